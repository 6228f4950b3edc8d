"""The cards of a line of words: `2x 24gb 3090`, `a100 40`, `4xH100`; in a sizing question a bare figure may be a card."""

import re

from bot.rulebook.gpu_names import SIBLING
from bot.rulebook.gpus import GpuSpec, Mention
from bot.rulebook.model_names import load_model_names
from bot.usecases.sizing.question import SizingRules
from bot.usecases.sizing.reader import Reader
from bot.usecases.sizing.tongues import in_english

_GB = r"\d{1,3} ?g(?:i?b)?"
_NONE = re.compile(r"(?<![\w.,:=/-])(?:0|-\d{1,3}|zero) $")
_ELSE = r" (?:of )?(?:pool|kv|weights|checkpoint|other|cpu|offload)"  # what a size is of, where it is not the card's


def cards_in(rules: SizingRules, text: str) -> tuple[str | None, int | None]:
    """The card of a text and how many of it; the name that several share where the text does not decide. None where it names none."""
    reader = Reader(rules.gpus, load_model_names(), in_english(text, rules.gpus))
    read_cards(reader)
    return reader.question.get("gpu"), reader.question.get("cards")


def read_cards(reader: Reader) -> None:
    """Every card that is named, and how many."""
    _sizes_behind(reader)
    for mention in reader.gpus.mentions(reader.rest):
        specs, end = _sized(reader, mention)
        text = reader.rest[mention.start : end].strip()
        none = _NONE.search(reader.rest[: mention.start])
        reader.blank(none.start() if none else mention.start, end)
        _put_card(reader, specs, text, 0 if none else mention.count)
    unlisted = (
        rf"(?<![\w.-])(?:\d{{1,2}} ?x? )?(?:(?:nvidia|geforce|rtx) )*([2-7]0[5-9]0(?:{SIBLING})+)(?: gpus?)?(?: {_GB}(?!{_ELSE}))?(?![\w.])"
    )
    for match in list(re.finditer(unlisted, reader.rest, re.IGNORECASE)):
        if reader.gpus.find(match[1]) is None:
            reader.blank(match.start(), match.end())
            reader.corrections.append(f"{match[1]!r} is no card that is known here: give its memory by --gpu-memory-bytes, such as 12GiB")
    bare = rf"(?<![\w.-])(?:(\d{{1,2}}) )?([2-7]0[5-9]0(?: ?Ti)?)s?(?: ({_GB})(?!{_ELSE}))?(?![\w.]|{SIBLING})"
    for match in list(re.finditer(bare, reader.rest, re.IGNORECASE)):
        found = reader.gpus.find(f"{match[2]} {match[3] or ''}")  # a bare figure: in a sizing question a card, in a log anything
        if isinstance(found, GpuSpec) and "gpu" not in reader.question:
            reader.blank(match.start(), match.end())
            _put_card(reader, (found,), f"{match[2]} {match[3] or ''}".strip(), int(match[1]) if match[1] else None)


def _sizes_behind(reader: Reader) -> None:
    """`24gb 3090` as `3090 24gb`, the way in which cards are named everywhere else."""
    for match in re.finditer(
        rf"(?<![\w.])(?P<size>{_GB}) (?P<card>(?:[A-Za-z]+ ){{0,2}}[A-Za-z]*\d\w*(?: ti)?)(?![\w.])", reader.rest, re.I
    ):
        if reader.gpus.find(re.sub(r"(?<=\d)s$", "", match["card"], flags=re.I)) is not None:
            reader.rest = f"{reader.rest[: match.start()]}{match['card']} {match['size']}{reader.rest[match.end() :]}"


def _sized(reader: Reader, mention: Mention) -> tuple[tuple[GpuSpec, ...], int]:
    """The cards of a mention and where it ends: the size of something else (`a100 46GB pool`) is not of the card; a bare figure after a
    name (`a100 40`) is, where a card of that name has it."""
    size = re.search(rf" ({_GB})$", mention.text, re.IGNORECASE)
    if size and re.match(_ELSE, reader.rest[mention.end :], re.IGNORECASE):
        found = reader.gpus.find(mention.text[: size.start()].split("x ")[-1])
        return (found if isinstance(found, tuple) else (found,) if found else mention.specs), mention.end - len(size[1])
    figure = re.compile(r" (\d{2,3})(?![\w.,%]| ?(?:k|g|gb|t|tokens?|seqs?|req\w*|users?|concurrent)\b)", re.IGNORECASE)
    after = figure.match(reader.rest, mention.end)
    sized = tuple(spec for spec in mention.specs if after and spec.nominal_gb == int(after[1]))
    return (sized, after.end()) if after and sized else (mention.specs, mention.end)


def _put_card(reader: Reader, specs: tuple[GpuSpec, ...], text: str, count: int | None) -> None:
    said = re.search(rf"({_GB})\)?$", text, re.IGNORECASE)
    if said and all(abs(int(re.sub(r"\D", "", said[1])) - spec.nominal_gb) > 0.12 * spec.nominal_gb for spec in specs):
        reader.corrections.append(f"{text!r}: {specs[0].id} is the card of that name, and has no {said[1]}")
    usual = tuple(spec for spec in specs if not spec.rare) or specs
    if len(usual) > 1:
        reader.corrections.append(f"{text!r} can be {' or '.join(spec.id for spec in usual)}; write which")
    given, name = reader.question.get("gpu"), usual[0].id if len(usual) == 1 else specs[0].short[0]
    if given is None:
        reader.question["gpu"] = name
    elif name not in str(given).split(","):
        reader.question["gpu"] = f"{given},{name}"
    if count is not None and reader.question.setdefault("cards", count) != count:
        reader.corrections.append(f"{text!r}: all cards are asked about with one number of them, {reader.question['cards']}")
