"""Engine arguments wherever they stand: a command, YAML, an args dump, a config dump, Python, prose."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import ahocorasick_rs

from bot.domain.deployment import Setting
from bot.domain.evidence import LogLine
from bot.domain.known import Known
from bot.domain.size import LARGEST
from bot.reading.anchored import standing
from bot.reading.manifests import argument_texts
from bot.reading.shorthand import FORMS, MARKED, MARKS, Form, figures_in, named_figures_in
from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule

_VALUE = (
    r"""(?P<value>'[^'\n]{0,4000}'|"(?:[^"\\\n]|\\.){0,4000}"|\{[^\n]{0,4000}?\}(?=['"]?\s*(?:,|$|-|\\|\}))"""
    r"""|\[[^\]\n]{0,4000}\]|(?:\d{1,2},)+\d{1,2}(?![\d.])|\d{1,3}(?:,\d{3})+(?![\d.]|,\d)|[^\s'"`,;)}\]\\]{1,400})"""
)
_SP = r"[ \t]{0,40}"
_FALSE = {"false", "none", "null", "no"}
_TRUTH = {*_FALSE, "true", "yes", "0", "1"}
_GROUPED = r"(?:(?:compilation[-_]config|cc|speculative[-_]config|kv[-_]cache[-_]config|O)\.)?"
_INSIDE = frozenset({"cudagraph_capture_sizes", "cudagraph_mode", "max_cudagraph_capture_size", "num_speculative_tokens"})
"""What is read inside a JSON value; other keys there belong to a draft model or a connector."""
_FLAG = rf"--?(?:no-)?(?:vllm[_.-])?{_GROUPED}[A-Za-z][\w-]*"
_KEY = r"(?:(?<!\.)(?<!/ )(?<!loading )|(?<=Config\.)|(?<=rollout\.))['\"]?(?P<key>[A-Za-z][\w-]*+)(?=['\"`]{0,2}[ \t]{0,40}[=:|])"
_NAMED = re.compile(rf"(?<![\w-])(?:(?P<flag>{_FLAG})|{_KEY})")
"""What may be an argument's name; which of them are is looked up: a pattern of all names would take 20 ms to compile."""
# a flag may stand before a space or, in a list, before a comma; a key needs = or :
_OF_FLAG = re.compile(
    rf"(?:`?\*{{0,2}}(?:=|['\"]?{_SP},{_SP}(?=['\"])|{_SP}\|{_SP}|`?[ \t]+=[ \t]+|:?[ \t]+(?:(?:set |pinned )?(?:to|at)[ \t]+(?=\d))?)"
    rf"(?!['\"]?--?[a-zA-Z])`?{_VALUE})?"
)
_BEFORE_NAME, _VLLM = re.compile(rf"^--?{_GROUPED}"), re.compile(r"^(?:vllm|sglang)[_.]")
_OF_KEY = re.compile(rf"['\"]?`?{_SP}(?:=(?!=)|:(?!/)|\|(?=[ \t]*\d)){_SP}`?{_VALUE}")
_MORE = re.compile(
    r"[ ]{0,4}`?[ ]{0,4}(?:,?[ ]{0,4}(?:and|or|then|to|vs\.?) |,|/|→|->|=>)[ ]{0,4}`?(?P<more>\d[\d._]*[kK]?)(?![\w%.-])(?! vocab)"
)
_BYTES = re.compile(
    r"""['"`]?(?:int\()?(?P<number>\d[\d,_]{0,20}(?:\.\d+)?(?:e\d{1,2})?)"""
    r"(?:\s?(?P<unit>[kKmMgGtT](?:i?[bB]|i)?)\b|\s*\*\s*\(?\s*(?:1024\s*\*\*\s*(?P<power>[1-4])|1\s*<<\s*(?P<bits>[1-4]0))"
    r"|\s*<<\s*(?P<shift>[1-4]0))?"
)
"""Bytes as people write them: 20G, 20 GiB, 20 * 1024**3, 20 << 30, int(20e9)."""
_RESOLVED = ("Namespace(", "non-default args", "LLM engine", "engine_args", "EngineArgs(", "server_args=", "ServerArgs(")
FLAG, DUMP, KEY, PROSE = 3, 2, 1, 0
LONGEST = 40_000
FEWEST_BYTES = 2**20


class Found(NamedTuple):
    """An argument and its value. `trust`: a flag beats a dump of resolved arguments, that a key elsewhere, that prose."""

    rule: ArgumentRule
    value: Setting
    trust: int


class _Given(NamedTuple):
    """An argument as it is written: its value, that value's text, whether a flag gives it, where it ends, and whether a script's own
    variable does, `AGENT_MAX_MODEL_LEN`, which may be another engine's.
    """

    rule: ArgumentRule
    value: Setting | None
    text: str | None
    flagged: bool
    end: int
    own: bool = False


class ArgumentReader:
    """Finds the arguments that rules/engine-args.toml knows, by flag, key or environment variable."""

    def __init__(self, book: Rulebook) -> None:
        self._by_name: dict[str, ArgumentRule] = {}
        for rule in book.arguments:
            for spelling in (rule.name, *rule.flags, *rule.keys, _camel(rule.name)):
                self._by_name[_plain(spelling)] = rule
        # a flag of one engine may be a key of another: --max-seq-len is TensorRT-LLM's, max_seq_len= stands in vLLM's config line
        self._by_key = {_plain(key): rule for rule in book.arguments for key in (rule.name, *rule.keys, _camel(rule.name))}
        self._rules = {rule.name: rule for rule in book.arguments}
        spellings = {s for rule in book.arguments for s in (rule.name, *rule.keys) if s.isupper()}  # environment variables
        spellings |= {*self._by_name, *(_camel(rule.name) for rule in book.arguments)}
        self._spellings = spellings
        self._anchors = sorted(_anchors(spellings))
        self._advice = [(said, one.signed) for one in book.advice if not (one.heads or one.example) for said in one.says]
        self._automaton = ahocorasick_rs.AhoCorasick([*self._anchors, *MARKS, *(words for words, _ in self._advice)])
        self._cures = [said for one in book.advice if one.heads for said in one.says]
        self._proposed = _proposed(self._cures, [said for one in book.advice if one.example for said in one.says])

    def read(self, lines: Sequence[tuple[LogLine, str]]) -> Iterator[tuple[LogLine, Found]]:
        """Each argument with its line; the texts are those of the lines, completed from the lines after them."""
        given, marked, advised = self._standing([text for _, text in lines])
        known: dict[tuple[str, bool, bool], list[Found]] = {}  # eight ranks say the same
        for place in sorted(given | marked.keys()):
            line, whole = lines[place]
            prose = line.level is None
            figures = prose and not line.speaker.pid
            if len(whole) > LONGEST or not (place in given or figures):
                continue
            if (whole, prose, figures) not in known:
                text = whole[: min(advised.get((place, signed), len(whole)) for signed in ((False,) if prose else (False, True)))]
                forms = marked.get(place, set()) if figures else None
                known[whole, prose, figures] = list(self._found(text, prose, forms, whole=text == whole, named=place in given))
            for found in known[whole, prose, figures]:
                yield line, found

    def _found(self, text: str, prose: bool, marked: Set[int] | None, *, whole: bool, named: bool) -> Iterator[Found]:
        """Each argument of a line's text. `marked`: the forms of which a mark stands in the line, where a person may speak; `whole`: is it
        all of the line; `named`: may an argument's own name stand in it.
        """
        if prose and ("(e.g." in text or (":" in text and self._may_be_proposed(text.lower()))):
            given, text = text, self._proposed.sub("", text)
            whole = whole and text == given
        if named:
            yield from self._stated(text, DUMP if any(mark in text for mark in _RESOLVED) else KEY, prose)
        if marked is not None:
            forms = [FORMS[n] for n in sorted(marked)]
            yield from self._said(text, forms if whole else [form for form in forms if form.stands_in(text)], named=named)

    def _may_be_proposed(self, small: str) -> bool:
        return any(word in small for word in self._cures)

    def _standing(self, texts: Sequence[str]) -> tuple[set[int], dict[int, set[int]], dict[tuple[int, bool], int]]:
        """(the lines that may give an argument, the forms of which a mark stands in a line, where in a line advice begins)."""
        given: set[int] = set()
        marked: dict[int, set[int]] = {}
        advised: dict[tuple[int, bool], int] = {}
        marks, advice = len(self._anchors), len(self._anchors) + len(MARKS)
        for place, found, start in standing(self._automaton, texts):
            if found < marks:
                if place not in given and _ends(self._anchors[found], texts[place], start):
                    given.add(place)
            elif found < advice:
                marked.setdefault(place, set()).update(MARKED[found - marks])
            else:
                key = place, self._advice[found - advice][1]
                advised[key] = min(start, advised.get(key, start))
        return given, marked, advised

    def _stated(self, text: str, trust: int, prose: bool) -> Iterator[Found]:
        for given in self._given(text):
            rule, trusted = given.rule, FLAG if given.flagged else PROSE if given.own else trust
            if given.value is not None:
                yield Found(rule, given.value, trusted)
            if given.text and "{" in given.text[:2]:
                yield from self._inside(given.text, trusted)
            if prose and given.value is not None and rule.kind in ("int", "float"):
                yield from self._more(rule, text, given.end, trusted)

    def _given(self, text: str) -> Iterator[_Given]:
        """Every argument that stands in a text."""
        at = 0
        while (name := _NAMED.search(text, at)) is not None:
            at = name.end()
            flag, key = name["flag"], name["key"]
            rule, negated = self._flag(flag) if flag else (self._key(key), False)
            own = self._own(key) if rule is None and key else None
            rule = rule or own
            match = None if rule is None else (_OF_FLAG if flag else _OF_KEY).match(text, at)
            if rule is None or match is None:
                continue
            given: str | None = match["value"]
            if flag and rule.kind == "bool":
                said = (given or "").strip("'\"").lower()
                at = match.end() if said in _TRUTH else at  # else what follows is no value of it
                yield _Given(rule, negated if said in _FALSE else not negated, None, True, at)
            else:
                at = match.end()
                typed = None if given is None else _typed(rule, given if rule.kind != "bytes" else text[match.start("value") :][:60])
                yield _Given(rule, typed, given, bool(flag), at, own is not None)

    def _own(self, key: str) -> ArgumentRule | None:
        """The argument of a script's variable that ends as the engine's own does, of at least two words."""
        words = key.split("_") if key.isupper() else []
        ends = ("_".join(words[n:]) for n in range(1, len(words) - 1))
        return next((self._by_name[_plain(end)] for end in ends if end in self._spellings), None)

    def _key(self, key: str) -> ArgumentRule | None:
        name = _plain(key)
        return self._by_key.get(name) or self._by_name.get(name) if key.replace("-", "_") in self._spellings else None

    def _flag(self, flag: str) -> tuple[ArgumentRule | None, bool]:
        """The argument of a flag, and whether the flag says no to it."""
        name = _BEFORE_NAME.sub("", flag).replace("-", "_")
        negated = name.startswith("no_") and name not in self._spellings
        name = name.removeprefix("no_") if negated else name
        name = name if name in self._spellings else _VLLM.sub("", name)
        return (self._by_name[_plain(name)] if name in self._spellings else None), negated

    def _inside(self, given: str, trust: int) -> Iterator[Found]:
        for one in self._given(given.strip("'\"").replace('\\"', '"')[1:]):
            if not one.flagged and one.rule.name in _INSIDE and one.value is not None:
                yield Found(one.rule, one.value, trust)

    def _more(self, rule: ArgumentRule, text: str, at: int, trust: int) -> Iterator[Found]:
        """Further values in a sentence: `0.9, 0.92 and 0.95`."""
        while (match := _MORE.match(text, at)) is not None:
            value = _typed(rule, match["more"])
            if not isinstance(value, int | float) or (rule.kind == "float" and value > 1) or (rule.kind == "int" and value < 256):
                return
            yield Found(rule, value, trust)
            at = match.end()

    def _said(self, text: str, forms: Sequence[Form], *, named: bool) -> Iterator[Found]:
        """Figures that people give in words or without a key's marks. `named`: an argument's own name stands in the text."""
        for name, figure, end in chain(figures_in(text, forms), named_figures_in(text) if named else ()):
            rule = self._rules.get(name) or self._key(name)
            if rule is None or rule.kind not in ("int", "float") or (value := _typed(rule, figure)) is None:
                continue
            yield Found(rule, value, PROSE)
            yield from self._more(rule, text, end, PROSE)


def _proposed(cures: Sequence[str], verbs: Sequence[str]) -> "re.Pattern[str]":
    """What somebody gives as an example, or as the cure: no setting of the start that failed."""
    begins, heads = "|".join(map(re.escape, verbs)), "|".join(map(re.escape, cures))
    return re.compile(rf"(?i)(?:\b(?:{begins})\w*\b[^.(\n]{{0,60}})\(e\.g\.[^)\n]{{0,400}}\)|\b(?:{heads})\b\W{{0,3}}:.*")


def _anchors(spellings: Iterable[str]) -> Iterator[str]:
    """Plain texts, one of which stands in every line that gives an argument."""
    for name in spellings:
        for form in {name, name.replace("_", "-"), name.replace("-", "_")}:
            yield f"-{form}"
            yield f".{form}"
            if len(form) > 2 or form.isupper():
                yield from (form + mark for mark in "=:'\"` ")


def _ends(anchor: str, text: str, start: int) -> bool:
    """Does the name end with the anchor that begins there, `.orders` has nothing of -o, and may it be given a value? A single word before
    a blank is a key, or a word of a sentence (`the model is`).
    """
    end = start + len(anchor)
    if anchor[0] in "-.":
        after = text[end : end + 1]
        return not (after.isalnum() or after in ("_", "-"))
    return anchor[-1] != " " or "-" in anchor or "_" in anchor or text[end : end + 40].lstrip(" \t")[:1] in ("=", ":", "|")


def _camel(name: str) -> str:
    """maxModelLen, as Helm charts spell it."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest) if name.islower() else name


def _plain(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_").lower()


def _typed(rule: ArgumentRule, text: str) -> Setting | None:
    text = text.strip().removeprefix("Some(").strip("'\"`").rstrip("\\").rstrip(".:*")  # as Rust prints what was given
    if text in ("", "None", "null", "...", "…") or text.startswith(("$", "<", "{{")):
        return None
    if rule.kind == "bool":
        return text.lower() not in (*_FALSE, "0")
    if rule.kind == "int":
        match = re.fullmatch(r"(\d[\d,_]{0,15})(?:\.\d+)?([kKmMgG](?:i?[bB])?)?", text)
        if match is None:
            return text if text in ("auto", "-1") else None
        scale = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}[(match[2] or "")[:1]]
        return int(match[1].replace(",", "").replace("_", "")) * scale
    if rule.kind == "bytes":
        return _bytes(text)
    if rule.kind == "float":
        match = re.match(r"(\d{0,6}\.?\d{1,6})(%?)(?!\d|\.\d)", text)  # 0.22.1 is a release
        value = None if match is None else float(match[1]) / (100 if match[2] else 1)
        return None if value is not None and value > 1 and "utilization" in rule.name else value
    return text.removeprefix("torch.")


def _bytes(text: str) -> int | None:
    """An engine's K, M, G and T are binary in capitals, decimal in small letters; None for fewer bytes than anything takes."""
    match = _BYTES.match(text)
    if match is None:
        return None
    unit, power = match["unit"] or "", int(match["power"] or 0) * 10 + int(match["bits"] or match["shift"] or 0)
    scale = 1000 ** ("kmgt".index(unit) + 1) if unit and unit in "kmgt" else 2 ** (power or 10 * (" kmgt".index(unit[:1].lower() or " ")))
    number = round(float(match["number"].replace(",", "").replace("_", "")) * scale)
    return number if FEWEST_BYTES <= number <= LARGEST else None


@lru_cache(maxsize=8)
def arguments_of(book: Rulebook) -> ArgumentReader:
    """One ArgumentReader for each rulebook."""
    return ArgumentReader(book)


def read_arguments(
    book: Rulebook, lines: Sequence[LogLine]
) -> tuple[dict[str, Known[Setting]], dict[str, tuple[Setting, ...]], dict[str, Known[Setting]], frozenset[str]]:
    """(arguments, the ones tried at several values, environment variables, the names that a flag or a person gave).

    The most trusted place counts; a number that a flag and the engine's own dump say differently was tried at both.
    """
    reader = arguments_of(book)
    given: dict[str, dict[int, list[Known[Setting]]]] = {}
    by_hand: set[str] = set()
    for line, (rule, value, trust) in reader.read(list(argument_texts(lines))):
        given.setdefault(rule.name, {}).setdefault(trust, []).append(Known(value, "log", line.source, line.number))
        if trust == FLAG or (trust != DUMP and not line.signed):
            by_hand.add(rule.name)
    arguments: dict[str, Known[Setting]] = {}
    tried: dict[str, tuple[Setting, ...]] = {}
    environment: dict[str, Known[Setting]] = {}
    for name, by_trust in given.items():
        found = _most_trusted(by_trust)
        values = list(dict.fromkeys(known.value for known in found))
        if len(values) == 1:
            (environment if name.isupper() else arguments)[name] = found[0]
        else:
            tried[name] = tuple(values)
    return arguments, tried, environment, frozenset(by_hand)


def _most_trusted(by_trust: dict[int, list[Known[Setting]]]) -> list[Known[Setting]]:
    best = max(by_trust)
    found = by_trust[best]
    if best != FLAG or DUMP not in by_trust:
        return found
    dumped = [known for known in by_trust[DUMP] if _is_number(known.value)]
    if not dumped:
        return found
    return [*found, *dumped] if all(_is_number(known.value) for known in found) else dumped


def _is_number(value: Setting) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
