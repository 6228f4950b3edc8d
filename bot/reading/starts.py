"""Starts that are no command of a shell: the arguments of a container in a manifest, a call in Python."""

import ast
import re
from collections.abc import Iterator, Sequence

from bot.domain.evidence import LogLine
from bot.rulebook.files import Launch

_KEY = re.compile(r"(?P<indent>\s*)(?:-\s+)?(?P<key>command|args)\s*:\s*(?P<rest>.*)$")
_IMAGE = re.compile(r"\s*(?:-\s+)?['\"]?image['\"]?\s*:")
_ITEM = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|([^\s,\[\]]+)")
_GIVEN = re.compile(r"(\w+)\s*=\s*(?:\"([^\",]*)\"?|'([^',]*)'?|([\w.\-/]+))")
_MODEL = ("--model", "--model-path", "--model-id", "--model_path")
MOST_LINES = 40


def called(rest: str, start: str) -> list[str] | None:
    """`LLM(` and its arguments, one word each (`dtype='half'`); None where it has none with a name."""
    try:
        call = next(node for node in ast.walk(ast.parse(f"f({_balanced(rest)}", mode="eval")) if isinstance(node, ast.Call))
        words = [f"model={ast.unparse(one)}" for one in call.args[:1] if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        words += [f"{one.arg}={ast.unparse(one.value)}" for one in call.keywords if one.arg]
    except (SyntaxError, ValueError, RecursionError, MemoryError, StopIteration):
        words = [
            f"{name}={number or repr(double or single)}" for name, double, single, number in _GIVEN.findall(rest.partition("\n")[0][:2000])
        ]
    return [start, *words] if any("=" in word for word in words) else None


def _balanced(text: str) -> str:
    """Up to the parenthesis that closes what was opened before."""
    depth = 1
    for place, sign in enumerate(text[:4000]):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return text[: place + 1]
    return text[:4000]


def manifest_start(lines: Sequence[LogLine], place: int, start: str, launch: Launch) -> list[str] | None:
    """The arguments of the container whose image stands on that line: the key that holds them (`args:`), then one word each."""
    if not launch.image or not _names_image(lines[place].text):
        return None
    found: list[str] | None = None
    for at, line in enumerate(lines[place + 1 : place + MOST_LINES], place + 1):
        text = line.text
        if line.source != lines[place].source or line.level is not None or _names_image(text):
            break
        if "args" in text or "command" in text:  # every line of a manifest is asked
            found = _of_key(lines, at) or found
    return found


def container_start(lines: Sequence[LogLine], place: int) -> list[str] | None:
    """The same of a key whose image is not shown, where a model is among its arguments."""
    words = _of_key(lines, place)
    return words if words and any(word.partition("=")[0] in _MODEL for word in words) else None


def _of_key(lines: Sequence[LogLine], at: int) -> list[str] | None:
    """The key of that line and the arguments that it holds, as words; None where it holds none."""
    key = _KEY.match(lines[at].text)
    words = _items(lines, at, key) if key is not None else []
    return [f"{key['key']}:", *words] if key is not None and any(word.startswith("--") for word in words) else None


def _names_image(text: str) -> bool:
    return "image" in text and _IMAGE.match(text) is not None


def _items(lines: Sequence[LogLine], at: int, key: re.Match[str]) -> list[str]:
    """A list in brackets, a list of dashes, or a text that may run over several lines."""
    rest = key["rest"].strip()
    deeper = list(_deeper(lines, at, len(key["indent"])))
    if rest.startswith("["):
        text = " ".join([rest, *deeper] if "]" not in rest else [rest]).partition("]")[0]
        return [double.replace('\\"', '"') or single or bare for double, single, bare in _ITEM.findall(text.removeprefix("["))]
    if not rest and deeper and deeper[0].startswith("-") and not deeper[0].startswith("--"):
        return [_unquoted(item.removeprefix("-").strip()) for item in deeper if item.startswith("- ")]
    text = " ".join(([] if rest[:1] in ("|", ">") else [rest]) + [line.removesuffix("\\") for line in deeper])
    return [next(filter(None, groups), "") for groups in re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", text)]


def _deeper(lines: Sequence[LogLine], at: int, indent: int) -> Iterator[str]:
    """The lines below that belong to the key: further in, or items of its list."""
    for line in lines[at + 1 : at + MOST_LINES]:
        text = line.text.lstrip()
        inside = len(line.text) - len(text)
        if line.source != lines[at].source or line.level is not None or not text or inside < indent + (not text.startswith("- ")):
            return
        yield text.rstrip()


def _unquoted(item: str) -> str:
    return item[1:-1] if len(item) > 1 and item[0] == item[-1] and item[0] in "'\"" else item
