"""Engine arguments wherever they stand: a command, YAML, an args dump, a config dump, Python, prose."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from bot.domain.deployment import Setting
from bot.domain.evidence import LogLine
from bot.domain.known import Known
from bot.rulebook.book import Rulebook
from bot.rulebook.files import ArgumentRule

_VALUE = r"""(?P<value>'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\{[^\n]*?\}(?=['"]?\s*(?:,|$|-|\\|\}))|\[[^\]\n]*\]|[^\s'",;)}\]\\]+)"""
_FALSE = {"false", "none", "null", "no"}


class ArgumentReader:
    """Finds the arguments that rules/engine-args.toml knows, by flag, key or environment variable."""

    def __init__(self, book: Rulebook) -> None:
        self._by_name: dict[str, ArgumentRule] = {}
        for rule in book.arguments:
            for spelling in (rule.name, *rule.flags, *rule.keys):
                self._by_name[_plain(spelling)] = rule
        # a flag of one engine may be a key of another: --max-seq-len is TensorRT-LLM's, max_seq_len= stands in vLLM's config line
        self._by_key = {_plain(key): rule for rule in book.arguments for key in (rule.name, *rule.keys)}
        shouted = {s for rule in book.arguments for s in (rule.name, *rule.keys) if s.isupper()}  # environment variables
        names = sorted({re.escape(n).replace("_", "[-_]") for n in (*self._by_name, *shouted)}, key=len, reverse=True)
        alternatives = "|".join(names) or "(?!)"
        # a flag may stand before a space; a key needs = or :
        self._pattern = re.compile(
            rf"(?:(?<![\w-])(?P<flag>--?(?:no-)?(?:vllm[_.-])?(?:{alternatives}))(?![\w-])(?:(?:=|\s+(?!-[a-zA-Z-]))\s*{_VALUE})?"
            rf"|(?<![\w.-])['\"]?(?P<key>{alternatives})['\"]?\s*(?:=(?!=)|:(?!/))\s*{_VALUE.replace('value', 'keyed')})"
        )

    def read(self, line: LogLine) -> Iterable[tuple[ArgumentRule, Setting, bool]]:
        """(rule, value, whether it stood as a command-line flag) for each argument on the line."""
        text = line.text
        if "=" not in text and ":" not in text and "--" not in text and " -" not in text:
            return
        for match in self._pattern.finditer(text):
            if match["flag"]:
                yield from self._flag(match["flag"], match["value"])
            elif match["keyed"] is not None:
                key = _plain(match["key"])
                rule = self._by_key.get(key) or self._by_name[key]
                value = _typed(rule, match["keyed"])
                if value is not None:
                    yield rule, value, False

    def _flag(self, flag: str, text: str | None) -> Iterable[tuple[ArgumentRule, Setting, bool]]:
        name = _plain(flag.lstrip("-"))
        negated = name.startswith("no_") and name not in self._by_name
        name = name.removeprefix("no_") if negated else name
        rule = self._by_name.get(name) or self._by_name.get(re.sub(r"^vllm[_.]", "", name))
        if rule is None:
            return
        if rule.kind == "bool":
            yield rule, not negated if text is None or text.lower() not in _FALSE else negated, True
        elif text is not None and (value := _typed(rule, text)) is not None:
            yield rule, value, True


def _plain(name: str) -> str:
    return name.strip().lstrip("-").replace("-", "_").lower()


def _typed(rule: ArgumentRule, text: str) -> Setting | None:
    text = text.strip().strip("'\"`").rstrip("\\").rstrip(".:")
    if text in ("", "None", "null", "..."):
        return None
    if rule.kind == "bool":
        return text.lower() not in (*_FALSE, "0")
    if rule.kind == "int":
        match = re.fullmatch(r"(\d[\d,_]*)(?:\.\d+)?([kKmMgG](?:i?[bB])?)?", text)
        if match is None:
            return text if text in ("auto", "-1") else None
        scale = {"": 1, "k": 1000, "K": 1024, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30}[(match[2] or "")[:1]]
        return int(match[1].replace(",", "").replace("_", "")) * scale
    if rule.kind == "float":
        match = re.match(r"\d*\.?\d+", text)
        return float(match[0]) if match else None
    return text


@lru_cache(maxsize=8)
def arguments_of(book: Rulebook) -> ArgumentReader:
    """One ArgumentReader for each rulebook."""
    return ArgumentReader(book)


def read_arguments(
    book: Rulebook, lines: Sequence[LogLine]
) -> tuple[dict[str, Known[Setting]], dict[str, tuple[Setting, ...]], dict[str, Known[Setting]]]:
    """(arguments, the ones tried at several values, environment variables). A flag beats a dump; a dump beats prose."""
    reader = arguments_of(book)
    given: dict[str, list[tuple[bool, Known[Setting]]]] = {}
    for line in lines:
        for rule, value, as_flag in reader.read(line):
            given.setdefault(rule.name, []).append((as_flag, Known(value, "log", line.source, line.number)))
    arguments: dict[str, Known[Setting]] = {}
    tried: dict[str, tuple[Setting, ...]] = {}
    environment: dict[str, Known[Setting]] = {}
    for name, found in given.items():
        flags = [known for as_flag, known in found if as_flag] or [known for _, known in found]
        values = list(dict.fromkeys(known.value for known in flags))
        home = environment if name.isupper() else arguments
        if len(values) == 1:
            home[name] = flags[0]
        else:
            tried[name] = tuple(values)
    return arguments, tried, environment
