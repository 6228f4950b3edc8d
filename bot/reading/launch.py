"""How the engine was started, word for word: a command in a shell, behind an image, or the arguments that it says were given."""

import ast
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import ahocorasick_rs

from bot.domain.evidence import LogLine
from bot.domain.known import Known
from bot.reading.anchored import standing
from bot.reading.starts import called, container_start, manifest_start
from bot.rulebook.book import Rulebook
from bot.rulebook.files import Launch

_GIVEN = "non-default args:"
_REST = re.compile(r"`|\s\d?>")  # the end of a quoted command, a redirection
_ENDS = frozenset({"|", "||", "&", "&&", ";", "<", "#", "(", ")"})
_BARE_JSON = re.compile(r"(?:(?<=\s)|(?<=[a-z]=))\{\"[^'\n]{0,2000}?\}(?=\s|$)")
"""A value that no shell has seen: a manifest's, whose quotes are its own."""
_SUBSTITUTED = re.compile(r"(?<![\w\"'$])\$\([^()'\"\n]{1,200}\)(?=\s|$)")
"""What the shell puts a command's output in for: one word, whatever stands in it."""
_BACKTICKS = re.compile(r"(?<=[\s=])`([^`()\n]{1,200})`(?=\s|$)")
"""The same as it was written of old."""
_FLAG = re.compile(r"--?[A-Za-z][\w.-]{0,60}(?:=.*)?", re.DOTALL)
_MODEL = re.compile(r"[~./\w$-][\w./$:@{}-]*[./0-9][\w./$:@{}-]*")
_HIDDEN = "[hidden]"
LONGEST = 8000
MOST_LINES = 60
"""Lines that one command may run over."""
_NOT_REPEATED = frozenset({"model", "model_tag"})
"""The model stands in front. Everything else was given for a reason; of a secret only the flag is known."""
_SECRET = frozenset({"api_key"})
_CONTAINER = frozenset({"docker", "podman", "nerdctl"})
_BEFORE = re.compile(r"[A-Za-z_]\w*=.*|(?:\S*/)?python[\d.]*|-[mu]|env|sudo|nohup", re.DOTALL)
"""What belongs to a start and stands in front of it: variables, an interpreter."""
_STOP = re.compile(r"(?<=[\]}\w\"'])[.,;:]+$")


def launches(book: Rulebook, lines: Sequence[LogLine]) -> tuple[Known[tuple[str, ...]], ...]:
    """Each start of an engine with its line, as words: the command that was given, with all its arguments; secrets stand hidden."""
    found: list[Known[tuple[str, ...]]] = []
    automaton, starts = _starts_of(book)
    first: dict[int, int] = {}
    for place, surest, _ in standing(automaton, [line.text for line in lines]):
        first[place] = min(surest, first.get(place, surest))
    for place in sorted(first):
        line, start = lines[place], starts[first[place]]
        if len(line.text) > LONGEST:
            continue
        words = None
        if start is None:
            words = _dumped(line.text.partition(_GIVEN)[2])
        elif line.level is None or "--" in line.text:
            words = _after(*_whole(lines, place, start[0]), *start) or manifest_start(lines, place, *start)
        if words:
            found.append(Known(tuple(words), "log", line.source, line.number))
    return tuple(found) or tuple(
        Known(tuple(words), "log", line.source, line.number)
        for place, line in enumerate(lines)
        if line.level is None and line.text.lstrip("- ")[:4] in ("comm", "args") and (words := container_start(lines, place)) is not None
    )


@lru_cache(maxsize=8)
def _starts_of(book: Rulebook) -> tuple[ahocorasick_rs.AhoCorasick, Sequence[tuple[str, Launch] | None]]:
    """An automaton of what starts an engine, and what that is, the surest first; None for the arguments that one says were given."""
    starts = [(start, launch) for launch in book.launches for start in launch.starts]
    return ahocorasick_rs.AhoCorasick([_GIVEN, *(start for start, _ in starts)]), [None, *starts]


def _whole(lines: Sequence[LogLine], place: int, start: str) -> tuple[str, str]:
    """What stands before `start` and behind it, with the lines that the command begins in and goes on in: those that end in a backslash,
    or are indented flags.
    """
    before, _, text = lines[place].text.partition(start)
    for line in reversed(lines[max(0, place - MOST_LINES) : place]):
        if line.source != lines[place].source or line.level is not None or not line.text.rstrip().endswith("\\"):
            break
        before = line.text.rstrip().removesuffix("\\") + " " + before
    for line in lines[place + 1 : place + MOST_LINES]:
        goes_on = text.rstrip().endswith("\\") or line.text.lstrip().startswith("--")
        if line.source != lines[place].source or line.level is not None or not goes_on:
            break
        text = text.rstrip().removesuffix("\\") + " " + line.text.strip()
    return before, text


def _after(before: str, rest: str, start: str, launch: Launch) -> list[str] | None:
    """The start as words, up to what is no argument any more; None where this is a sentence about the command."""
    if start.endswith("("):
        return called(rest, start) if not before[-1:].isalnum() and before[-1:] != "_" else None
    tag = re.match(r"[\w.:@-]*", rest).group() if "/" in start and not start.endswith(".py") else ""  # type: ignore[union-attr]  # an image's
    if "-" not in rest[len(tag) :] and "/" not in rest[len(tag) :]:
        return None
    if before.count("`") % 2 == 0:  # no quoted command
        rest = _BACKTICKS.sub(r"$(\1)", rest)
    words = [word for word in _words(_REST.split(rest[len(tag) :], maxsplit=1)[0]) if word.strip()]
    taken = list(_arguments(words))
    model = [word for word in taken[:1] if not word.startswith("-")]
    if not any(word.startswith("--") for word in taken) and not (model and "/" in model[0]):
        return None
    if model and _MODEL.fullmatch(model[0]) is None:
        return None
    begins = _begins(before, start + tag, launch)
    return [*begins, *(_model_first(taken) if start == "vllm serve" and not model else taken)]


def _begins(before: str, start: str, launch: Launch) -> list[str]:
    """The launcher as it was given: the container's command, or the interpreter and the variables in front; the usual one where none is."""
    before = before[-LONGEST:]
    head = re.split(r"[\s`'\"(]", before)[-1]  # of a path or a registry
    words = list(_words(before[: len(before) - len(head)].replace("`", " ")))
    own = (head.lstrip("$") + start).split()
    begun = next((place for place in reversed(range(len(words))) if words[place] in _CONTAINER and "run" in words[place : place + 3]), None)
    if begun is not None and launch.image:
        return [*words[begun:], *own]
    kept: list[str] = []
    while words and _BEFORE.fullmatch(words[-1]):
        kept.insert(0, words.pop())
    usual = launch.command.rsplit(" --", 1)[0].removesuffix(" -m").split()
    given = any("=" not in word for word in kept) or len(own) >= len(usual)
    return [*kept, *([] if given else usual[: len(usual) - len(own)]), *own]


def _model_first(words: Sequence[str]) -> list[str]:
    """`vllm serve` takes its model as the first word; several releases refuse it behind --model."""
    for place, word in enumerate(words):
        if word == "--model" and place + 1 < len(words):
            return [words[place + 1], *words[:place], *words[place + 2 :]]
        if word.startswith("--model="):
            return [word.partition("=")[2], *words[:place], *words[place + 1 :]]
    return list(words)


def _words(text: str) -> Iterator[str]:
    """Shell words up to a pipe, a redirection or the end of the command; of an unclosed quote what stands before it."""
    if not text.strip():
        return  # a lexer is made slowly, and behind most images nothing stands
    whole = _SUBSTITUTED.sub(r"'\g<0>'", _BARE_JSON.sub(r"'\g<0>'", text))
    lexer = shlex.shlex(whole, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        for word in lexer:
            if word in _ENDS:
                return
            yield _STOP.sub("", word) if word[:1] in "{[" or word[-2:-1].isdigit() else word  # a sentence's stop is no part of a value
    except ValueError:
        return


def _arguments(words: Sequence[str]) -> Iterator[str]:
    """A model in front, then flags with what belongs to each; what follows a flag's values and is no flag ends the command."""
    values = 0
    for place, word in enumerate(words):
        flag = word.startswith("-") and _FLAG.fullmatch(word) is not None
        if flag:
            values = 0
        elif place:
            values += 1
            if values > 1 and not _like(word, words[place - 1]):
                return
        elif len(words) > 1 and not words[1].startswith("-"):
            return
        yield word


def _like(word: str, before: str) -> bool:
    """Is it another item of the same list (1 2 4 8, a=b c=d), not a word of a sentence?"""
    return (word.isdigit() and before.isdigit()) or ("=" in word and "=" in before)


def _dumped(text: str) -> list[str] | None:
    """vLLM's own list of what was given, a Python dict; None where it holds more than plain values."""
    try:
        given = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        return None
    model = given.get("model_tag") or given.get("model")
    words = ["vllm", "serve", *([str(model)] if model else [])]
    for name, value in given.items():
        if name not in _NOT_REPEATED and value is not None:
            words += _written(name.replace("_", "-"), _HIDDEN if name in _SECRET or _HIDDEN in str(value) else value)
    return words


def _written(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, list | tuple) and value and not isinstance(value[0], dict | list):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}", json.dumps(value) if isinstance(value, dict | list | tuple) else str(value)]
