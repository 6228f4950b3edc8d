"""A command's words as a shell takes them: quoted where they must be, and bare where the shell itself fills something in."""

import re
import shlex
from collections.abc import Iterable

_BARE = re.compile(r"(?:[\w@%+=:,./~-]|\$\w+|\$\{\w+\})+", re.ASCII)
_FILLED_IN = re.compile(r"\$[\w{]")
_ASKED = re.compile(
    r"\$\((?:nvidia-smi|rocm-smi|nproc|pwd|hostname|whoami|id|date)(?![\w./-])[^|;&<>`$()\n]*"
    r"(?:\|\s*(?:wc|head|tail|grep|sort|uniq|cut|tr)(?![\w./-])[^|;&<>`$()\n]*)*\)"
)
"""A command's output, of commands that only tell something: what somebody typed is passed on, but nothing that could do harm."""


def joined(words: Iterable[str]) -> str:
    """The words as one line that means what they meant where they were typed: `~/models`, `$PORT` and `$(nvidia-smi -L | wc -l)` are the
    shell's to fill in; a value with quotes of its own (JSON) is not.
    """
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if _BARE.fullmatch(word):
        return word
    if _ASKED.fullmatch(word) or (_FILLED_IN.search(word) and not set(word) & set("\"'`\\!(")):
        return f'"{word}"'
    return shlex.quote(word)
