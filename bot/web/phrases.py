"""The contract's words as a person reads them: phases, verdicts, outcomes; and what in them leads to another page."""

import re
from html import unescape
from urllib.parse import quote

from markupsafe import Markup, escape

from bot.domain.phases import STEPS as STEPS
from bot.domain.phases import phase_words
from bot.usecases.wording import in_few_words, in_words

_ID = re.compile(r"\bD-\d{4,}\b")
_FLAG = re.compile(r"(?<![\w-])--?[a-z][\w.-]+|\b[A-Z]+_[A-Z0-9_]+\b")
_CODE = re.compile(r"`([^`<>]{1,300})`")

VERDICTS = {
    "certain": "a telling line of the failing process says so",
    "likely": "the evidence points there, but no single line says it",
    "open": "the evidence cannot decide yet",
}

OUTCOMES = {
    "fixed": "It worked",
    "moved": "Error moved",
    "same": "Same error",
    "wrong": "Diagnosis was wrong",
    "other": "Something else",
}

OUTCOME_SAID = {"fixed": "worked", "moved": "error moved", "same": "same error", "wrong": "diagnosis wrong", "other": "other"}


def phase(name: str) -> str:
    """A phase in a few words."""
    return phase_words(name).few


def change(of: object, deployment: object = None) -> str:
    """One change as an advice: the flag, from where it goes if the `deployment` says so, and to what."""
    return in_words(of, deployment if isinstance(deployment, dict) else None) if isinstance(of, dict) else ""


def few(of: object) -> str:
    """One change, or a row that names one, in a few words for a table."""
    return in_few_words(of) if isinstance(of, dict) else ""


def unbroken(text: str) -> Markup:
    """A change in words whose flag, or variable, is not broken over two lines at its hyphens."""
    return Markup(_FLAG.sub(r'<span class="flag">\g<0></span>', str(escape(text))))


def linked(text: str) -> Markup:
    """A sentence with each incident that it names as a link to it, and each command as a link to the page that does the same."""
    shown = _ID.sub(r'<a href="/d/\g<0>">\g<0></a>', str(escape(text)))  # escaped before
    return Markup(_CODE.sub(_command, shown))


def _command(code: re.Match[str]) -> str:
    where, rest = "", unescape(code[1]).partition(" ")[2].partition(" ")[2]
    if code[1].startswith("oombot size "):
        named = re.sub(r"(?:--\w+ )?\b(?:MODEL|NAME|FILE)\b ?", "", rest).strip()
        where = f"/size?q={quote(named)}" if named else "/size"
    elif code[1].startswith("oombot explain "):
        where = f"/explain/{quote(rest, safe='')}"
    elif code[1] in ("oombot history", "oombot explain"):
        where = f"/{code[1].partition(' ')[2]}"
    shown = f"<code>{code[1]}</code>"
    return f'<a href="{escape(where)}">{shown}</a>' if where else shown
