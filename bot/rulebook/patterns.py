"""Compiles rule patterns with the shared pieces they may name: figures (?&SIZE), (?&NUM), (?&COUNT); words (?&FAILS), (?&OOM), (?&GAP)."""

import re
from functools import lru_cache
from typing import Any

import regex

PIECES = {
    "NUM": r"[-+\u2212]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?",
    "COUNT": r"\d{1,3}(?:,\d{3})+|\d+",
    "SIZE": r"[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\ ?(?:bytes|[KMGT]i?B|B)\b",
    "FAILS": r"""(?i:(?:(?<![A-Za-z0-9_-])OOM(?:s|ed|ing|'s|'ed|'d)?(?![A-Za-z0-9_])|out[\ -]of[\ -]memory
  |OutOfMemory(?:Error)?|crash(?:es|ed|ing)?\b
  |fail(?:s|ed|ing)?\b|dies\b|died\b)
  (?:\ ?\((?:OOM|out\ of\ memory)\))?(?:\ (?:CUDA\ )?(?:errors?|issues?|problems?|exceptions?|crash(?:es)?))?)""",
    "OOM": r"""(?i:(?<![A-Za-z0-9_-])OOM(?:s|ed|ing|'s|'ed|'d)?(?![A-Za-z0-9_])|out[\ -]of[\ -](?:(?:GPU|CUDA|device)\ )?memory|OutOfMemory
  |(?:runs?|ran|running)\ out\ of\ (?:the\ )?(?:GPU|CUDA|VRAM|video|device)|显存(?:不足|不够|溢出|爆)|爆显存)""",
    "GAP": r"""(?i:(?:(?!\b(?:fine|ok|okay|success\w*|finish\w*|complet\w*|after|but|then|until|without|works?|before|not|once)\b)
  (?:[^.;!?。；]|\.(?=\S))){0,60}?)""",
    "WHILE": r"(?i:\b(?:at|in|during|while|when(?:ever)?|on|upon|after|under|with|once)\b)",
}
"""Put in where a pattern names them: a call of a shared group would cost seven times as much as its text."""
_CALL = regex.compile(r"\(\?&(\w+)\)")
TIMEOUT = 1.0


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> "regex.Pattern[str]":
    """A rule's pattern in verbose mode, so that a space is written `\\ ` and a pattern may run over lines.

    regex.error when it is none.
    """
    return regex.compile(expanded(pattern), regex.VERBOSE | regex.VERSION1)


def expanded(pattern: str) -> str:
    """The pattern with the shared pieces in their places."""
    return _CALL.sub(lambda call: f"(?:{PIECES[call[1]]})" if call[1] in PIECES else call[0], pattern.strip("\n"))


@lru_cache(maxsize=256)
def quick(pattern: str) -> "re.Pattern[str] | regex.Pattern[str]":
    """The same for short texts, without a time limit: the standard library takes half the time for what it can compile."""
    try:
        return re.compile(expanded(pattern), re.VERBOSE)
    except re.error:
        return compiled(pattern)


def search(pattern: str, text: str, start: int = 0) -> "regex.Match[str] | None":
    """The first match, or None; also None when the time limit runs out, so that no line can hold up a reading."""
    try:
        return compiled(pattern).search(text, start, timeout=TIMEOUT)
    except TimeoutError:
        return None


def match(pattern: str, text: str, start: int = 0) -> "regex.Match[str] | None":
    """The same at the given position only."""
    try:
        return compiled(pattern).match(text, start, timeout=TIMEOUT)
    except TimeoutError:
        return None


def groups(found: "regex.Match[str]") -> dict[str, Any]:
    """Named groups that took part, the shared definitions left out."""
    return {k: v for k, v in found.groupdict().items() if v is not None and not k.isupper()}
