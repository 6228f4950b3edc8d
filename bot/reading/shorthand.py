"""Figures of arguments that people give without a flag's or a key's marks: `util 0.9`, `max seqs of 64`, `ctx 32k`, `gmu 0.85`."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bot.reading.plain import small

_IS = (
    r"[`'\"*]{0,3}[ ]{0,4}(?:of|to|at|is|was|set to|set at|=|:|from|\(|→|->|=>|about"
    r"|(?:as|at) (?:the |its )?default(?: of)? ?\(?|\(?default(?:s to)?"
    r"|设置为|设为|设的是?|设到|设置成|开到|调到|调至|改为|改成|为|是|は|を)?"
    r"[ ]{0,4}[~≈]?[`'\"*]{0,2}"
)
_ENDS = r"(?![A-Za-z0-9_%]|[.,]\d)"
_BEGINS = r"(?<![A-Za-z0-9_-])"
_LENGTH = r"(?P<value>\d{1,3}(?:[,_]\d{3})+|\d{3,8}|\d{1,4}[kK])"
_SHARE = r"(?:(?:gpu[ _-])?(?:mem(?:ory)?[ _-])?util(?:i[sz]ation)?|gmu|(?:显存)?(?:利用|占用|使用)率)"
_SEQUENCES = r"(?:(?<!running )(?<!waiting )(?<!active )(?<!dummy )(?:max[ _-]?)?(?:num[ _-]?)?seqs|mns)"
_BATCHED = r"(?:(?:max[ _-]?)?(?:num[ _-]?)?batched[ _-]?tokens|mnbt)"
_CONTEXT = (
    r"(?:mml|(?:max[ _-]?)?ctx(?:[ _-]?len(?:gth)?)?|max(?:imum)?[ _-]context[ _-](?:len(?:gth)?|window|size)|max[ _-]?len|上下文长度)"
)
_GIB = r"[~≈]?\d{1,3}(?:\.\d{1,2})? ?Gi?B"
_OF_CARD = rf" ?[×*] ?\d{{1,3}}(?:\.\d{{1,2}})?(?: ?Gi?B)? ?= ?{_GIB}"
BEFORE, BEHIND = 40, 80
"""Letters around the beginning of a mark within which all stands that it belongs to."""
_DIGIT = re.compile(r"\d")
_POWERS = frozenset(2**n for n in range(11))


class Form(NamedTuple):
    """How the figure of an argument is said, and the texts one of which stands in every such line, also in small letters."""

    argument: str
    marks: tuple[str, ...]
    small: tuple[str, ...]
    pattern: "re.Pattern[str]"

    def stands_in(self, text: str) -> bool:
        """May it stand in a text?"""
        return any(mark in text for mark in self.marks)


def _form(argument: str, marks: str, pattern: str, begins: str = _BEGINS) -> Form:
    several = tuple(marks.split("|"))
    return Form(argument, several, tuple(dict.fromkeys(map(str.lower, several))), re.compile(f"(?i){begins}{pattern}{_ENDS}"))


_GLUED = "tp1|tp2|tp4|tp8|TP1|TP2|TP4|TP8"
"""`TP2` alone may as well be a rank: it is a size on so many cards, or beside another size."""
FORMS = (
    _form("gpu_memory_utilization", "util|Util|UTIL|gmu|GMU|率", rf"{_SHARE}{_IS}(?P<value>0?\.\d{{1,4}}|1(?:\.0)?)", r"(?<![A-Za-z0-9_])"),
    _form("gpu_memory_utilization", "util|Util|gmu|GMU", rf"(?P<value>0?\.\d{{1,4}})(?: |的) ?`?-{{0,2}}{_SHARE}", r"(?<![A-Za-z0-9_.-])"),
    _form("gpu_memory_utilization", "_util|-util", rf"gpu[_-]mem(?:ory)?[_-]util(?:i[sz]ation)?{_IS}(?P<value>\d{{2}}%)"),
    _form("gpu_memory_utilization", "×|*", rf"(?P<value>0\.\d{{1,3}}){_OF_CARD}", r"(?<![\w.])"),  # 0.52 × 23.5 = 12.2 GiB
    _form(
        "gpu_memory_utilization", "×|*", rf"\d{{1,3}}(?:\.\d{{1,2}})?(?: ?Gi?B)? ?[×*] ?(?P<value>0\.\d{{1,3}}) ?= ?{_GIB}", r"(?<![\w.])"
    ),
    _form("mem_fraction_static", "raction", rf"mem(?:ory)?[ _-]fraction(?:[ _-]static)?{_IS}(?P<value>0?\.\d{{1,4}})"),
    _form("max_model_len", "len|Len|LEN", rf"max[ _-]?model[ _-]?len(?:gth)?{_IS}{_LENGTH}"),
    _form("max_model_len", "ctx|CTX|mml|MML|ontext|max len|max-len|max_len|maxlen|上下文长度", rf"{_CONTEXT}{_IS}{_LENGTH}"),
    _form("max_num_seqs", "seqs|mns", rf"{_SEQUENCES}{_IS}(?P<value>\d{{1,5}})"),
    _form("max_num_batched_tokens", "batched|mnbt", rf"{_BATCHED}{_IS}{_LENGTH}"),
    _form("max_num_batched_tokens", "batched", rf"{_LENGTH} {_BATCHED}"),
    _form(
        "tensor_parallel_size",
        "tp=|tp |tp-|tp:|tp_|TP=|TP |TP-|TP:|TP_",
        r"tp(?:[ _-]size)?(?: ?[=:] ?| of |(?=[ -](?:2|4|8|16|32)\b)[ -])(?P<value>[1-9]\d?)",
    ),
    _form(
        "tensor_parallel_size", _GLUED, r"tp(?P<value>[1-9]\d?)(?= on (?:the |my |our )?(?:\d|two|four|eight)|[ /,+]{1,2}(?:pp|dp|ep)\d)"
    ),
    _form("tensor_parallel_size", _GLUED, r"(?P<cards>2|4|8|16) ?[x×*] ?[a-z0-9][\w -]{1,24}[ (,]{1,3}tp(?P<value>(?P=cards))"),
    _form("tensor_parallel_size", "parallel", rf"tensor[ _-]parallel(?:ism)?(?:[ _-]size)?{_IS}(?P<value>[1-9]\d?)"),
    _form("pipeline_parallel_size", "pp=|pp |pp:|PP=|PP |PP:", r"pp ?[=:] ?(?P<value>[1-9]\d?)"),
    _form("pipeline_parallel_size", _GLUED, r"tp[1-9]\d?[ /,+]{1,2}pp(?P<value>[1-9]\d?)"),
    _form("data_parallel_size", "dp=|dp |dp:|DP=|DP |DP:", r"dp ?[=:] ?(?P<value>[1-9]\d?)"),
)

MARKS = tuple(dict.fromkeys(mark for form in FORMS for mark in form.marks))
MARKED = tuple([n for n, form in enumerate(FORMS) if mark in form.marks] for mark in MARKS)
"""By a mark's number the numbers of the forms that it belongs to."""
_NAMED = re.compile(
    rf"{_BEGINS}(?P<name>[a-z]++(?:[_-][a-z]++)++)`? "
    rf"(?:(?:of|to|at|is|was|set to|→|~) ?)?`?(?P<value>\d[\d,_]{{0,9}}(?:\.\d{{1,4}})?){_ENDS}"
)
"""An argument's own name in a sentence; with a key's marks it is read elsewhere: in a connector's JSON it is not the engine's."""


def named_figures_in(text: str) -> Iterator[tuple[str, str, int]]:
    """(what may be an argument's name, its figure as text, where that ends) of each."""
    return ((match["name"], match["value"], match.end()) for match in _NAMED.finditer(text))


def figures_in(text: str, forms: Sequence[Form]) -> Iterator[tuple[str, str, int]]:
    """(argument, its figure as text, where that ends) of each that is said in one of these forms."""
    lower = small(text) if forms else ""
    for argument, _, marks, pattern in forms:
        done = 0
        for place in sorted(_places(marks, lower)):
            begin, end = max(place - BEFORE, done), min(place + BEHIND, len(text))
            for match in pattern.finditer(text, begin, end) if _DIGIT.search(text, begin, end) else ():
                yield argument, _length(match) if argument == "max_model_len" else match["value"], match.end()
                done = match.end()


def _places(marks: Sequence[str], lower: str) -> Iterator[int]:
    """Where marks stand in a text in small letters."""
    for mark in marks:
        at = lower.find(mark)
        while at >= 0:
            yield at
            at = lower.find(mark, at + 1)


def _length(match: "re.Match[str]") -> str:
    """`ctx 32k` are 32,768 tokens and `ctx 40k` 40,000; what the engine's own argument is given, it counts itself."""
    value = match["value"]
    if value[-1] not in "kK" or "model" in match[0].lower() or int(value[:-1]) not in _POWERS:
        return value
    return str(int(value[:-1]) * 1024)
