"""`oombot size`: a model, cards and flags in; whether it fits, the budget of every rank and the command out."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bot.cli.spoken import Spoken
from bot.settings import Settings
from bot.usecases.reply import Reply, Unusable
from bot.usecases.sizing.arguments import ARGUMENTS, Argument, value_of

_EXAMPLES = """examples:
  oombot size llama-3.3-70b on 4xH100 128k fp8 kv
  oombot size Qwen/Qwen3-32B --gpu H100 --tp 2 --max-model-len 32768
  oombot size --config config.json --gpu A100-80GB,H200,B200 --tp 4
  oombot size gemma-3-27b --gpu H100 --engine-version 0.25.0 --engine-version 0.26.0"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Its options: every engine argument by its own name and by a short one."""
    parser.epilog, parser.formatter_class, parser.allow_abbrev = _EXAMPLES, argparse.RawDescriptionHelpFormatter, False
    parser.__class__ = Spoken  # a subcommand's parser is made by its parent's class
    parser.add_argument("model", nargs="*", metavar="MODEL | words", help="owner/name, a folder, a well-known name, or a question in words")
    parser.add_argument("--config", metavar="FILE", help="a config.json, or the folder that holds it")
    parser.add_argument("--batch", metavar="FILE", help="JSON Lines in, one answer line each; - for standard input")
    parser.add_argument("--json", action="store_true", help="the contract's JSON and nothing else")
    for argument in ARGUMENTS:
        _add(parser, argument)


def _add(parser: argparse.ArgumentParser, argument: Argument) -> None:
    flags = ["--" + name.replace("_", "-") for name in (argument.name, *argument.short)]
    if argument.kind == "switch":
        parser.add_argument(*flags, dest=argument.name, action=argparse.BooleanOptionalAction, default=None, help=argument.help)
        return
    repeats = "append" if argument.name == "engine_version" else "store"
    parser.add_argument(
        *flags, dest=argument.name, action=repeats, type=_typed(argument), metavar=_METAVARS[argument.kind], help=argument.help
    )


_METAVARS = {"count": "N", "tokens": "TOKENS", "fraction": "F", "bytes": "BYTES", "text": "NAME", "json": "JSON", "gib": "GIB"}


def _typed(argument: Argument) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return value_of(argument, text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def run(options: argparse.Namespace, settings: Settings) -> int:
    """0 for every answer, also when it does not fit; 2 (Unusable) when the question cannot be answered."""
    if options.batch:
        from bot.cli.size_batch import answer_lines

        return answer_lines(options.batch, settings)
    from bot.cli.terminal import put

    reply = _answer(options, settings)
    if options.json:
        put(reply, True, "")
    else:
        from bot.cli.show_sizing import sizing_text

        put(reply, False, sizing_text(reply.document))
    return 0


def _answer(options: argparse.Namespace, settings: Settings) -> Reply:
    from bot.cli.size_measured import measured_here
    from bot.usecases.sizing.ask import on_hub, with_cards, with_model
    from bot.usecases.sizing.question import load_sizing
    from bot.usecases.sizing.size import size

    rules = load_sizing()
    question, corrections = _question(options)
    question |= _flags(options)
    question |= _local_draft(question)
    local = _local(options, question)
    if local is not None:
        question = {**question, **local}
    question = with_model(with_cards(question), on_hub(settings), names_first=len(options.model) > 1)
    reply = size(rules, question, measured_here(settings, question))
    return Reply(reply.kind, {**reply.document, **({"corrections": corrections} if corrections else {})}, reply.warning)


def _question(options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """One word is a model; several are a question in words."""
    if not options.model:
        return {}, []
    one = len(options.model) == 1 and " " not in options.model[0].strip()
    if one and ("/" in options.model[0] or Path(options.model[0]).exists()):
        return {"model": options.model[0]}, []
    from bot.usecases.sizing.question import load_sizing
    from bot.usecases.sizing.words import read_words

    question, corrections = read_words(load_sizing(), " ".join(options.model))
    if one and (corrections or "gpu" not in question):  # else it is cards, and a model's name is missing
        return {"model": options.model[0]}, []
    return question, list(corrections)


def _flags(options: argparse.Namespace) -> dict[str, Any]:
    """What the flags say; they win over words. One --engine-version is one, several are compared."""
    given = {argument.name: getattr(options, argument.name) for argument in ARGUMENTS}
    versions = given.pop("engine_version")
    said = {name: value for name, value in given.items() if value is not None}
    return said | ({"engine_version": versions[0] if len(versions) == 1 else versions} if versions else {})


def _local_draft(question: Mapping[str, Any]) -> dict[str, Any]:
    """The config.json of what drafts tokens, where that is a folder of this machine."""
    from bot.hub.error import HubError
    from bot.hub.folder import read_folder
    from bot.usecases.sizing.draft import told_of_draft

    told = told_of_draft(question)
    path = Path(str(told.get("model") or ""))
    if not told.get("model") or told.get("config") is not None or not path.is_dir():
        return {}
    try:
        return {"speculative_config": {**told, "config": read_folder(path).config}}
    except (HubError, UnicodeDecodeError, FileNotFoundError) as error:
        raise Unusable(f"{path}: {error}") from None


def _local(options: argparse.Namespace, question: Mapping[str, Any]) -> dict[str, Any] | None:
    """config.json (and headers) from a file or folder of this machine, None when the question names none."""
    from bot.hub.error import HubError

    path = Path(options.config) if options.config else Path(str(question.get("model") or ""))
    if not options.config and not (question.get("model") and (path.is_dir() or path.is_file())):
        return None
    try:
        return _read(path, named_as_model=not options.config)
    except RecursionError:
        raise Unusable(f"{path} is nested too deeply to be a model's config. Give the model's own config.json.") from None
    except FileNotFoundError:
        raise Unusable(f"{path}: there is no such file. Give the model's config.json, or the folder that holds it.") from None
    except (HubError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: {error}") from None


def _read(path: Path, *, named_as_model: bool) -> dict[str, Any]:
    from bot.hub.folder import LARGEST, parsed_json, read_folder

    if path.is_dir():
        found = read_folder(path)
        beside = {"hf_quant_config": found.hf_quant_config, "tensors": found.tensors}
        model = {"model": str(path)} if named_as_model or found.tensors else {}
        return {"config": found.config, **model, **{k: v for k, v in beside.items() if v is not None}}
    if path.exists() and not (path.is_file() or path.is_fifo()):  # the latter is a shell's <(…) or here-document
        raise Unusable(f"{path} is no file with an end. Give the model's config.json, or the folder that holds it.")
    with path.open("rb") as file:
        config = parsed_json(file.read(LARGEST + 1), "this")
    return {"config": config, **({"model": None} if named_as_model else {})}  # a file's name is no model's
