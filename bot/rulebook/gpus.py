"""Accelerators by any name that logs, nvidia-smi, Kubernetes, clouds and people give them, and the memory torch reports for each."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import ahocorasick_rs
import msgspec
import rtoml

from bot.domain.size import GIB, MIB
from bot.rulebook.load import RulebookError, rules_folder

_NOISE = frozenset(["nvidia", "amd", "intel", "geforce", "tesla", "instinct", "radeon", "gpu", "gpus", "graphics", "shared", "each"])
_FORM = re.compile(r"(sxm\d?|pcie?|hbm\d?e?|oam|hgx|vram|ram|memory)$")
_SIZED = re.compile(r"(\d+(?:\.\d+)?)(gb|gib|g)$")
_LONGEST = 50
"""Letters before its anchor that a name may have, with a number of cards before it."""
_BEGINS = re.compile(r"\w(?<![\w.\-/]\w)")
_NEAR, _NEAR_SHARE = 6 * GIB // 10, 0.012  # how far a printed total may lie from those seen: drivers and ECC move it


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One card. `total` as torch prints it, in bytes; None where it is a setting of the machine. `seen`: lowest and highest in logs.

    `compute`: CUDA compute capability or architecture. `rare`: not meant by a shared name unless the size says so. `part_of`: MIG parent.
    """

    id: str
    vendor: str
    compute: str
    names: tuple[str, ...]
    short: tuple[str, ...]
    labels: tuple[str, ...]
    cloud: Mapping[str, int]
    nominal_gb: int
    total: int | None
    seen: tuple[int, int] | None
    smi: int | None
    fp8: str
    unified: bool
    rare: bool
    verified: bool
    part_of: str | None
    note: str


def capability(compute: str) -> tuple[int, int] | None:
    """A CUDA compute capability in figures, `8.6` as (8, 6); None for another maker's architecture, or where none is known."""
    major, _, minor = compute.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


@dataclass(frozen=True, slots=True)
class Mention:
    """A card named in a text: one spec, or several when the name is shared. `count` None where the text gives none."""

    specs: tuple[GpuSpec, ...]
    count: int | None
    text: str
    start: int
    end: int


class _Row(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    id: str
    vendor: str
    compute: str
    names: list[str]
    short: list[str]
    nominal_gb: int
    fp8: str
    verified: bool
    labels: list[str] = []
    cloud: dict[str, int] = {}
    total_gib: float | None = None
    total_bytes: int | None = None
    seen_gib: tuple[float, float] | None = None
    smi_mib: int | None = None
    unified: bool = False
    rare: bool = False
    part_of: str | None = None
    note: str = ""


class Gpus:
    """All cards of rules/gpus.toml, looked up by name, by total and in running text."""

    def __init__(self, specs: Iterable[GpuSpec]) -> None:
        self.specs = tuple(specs)
        self.by_id: Mapping[str, GpuSpec] = {spec.id: spec for spec in self.specs}
        self._labels = _index((name.lower(), spec) for spec in self.specs for name in (*spec.labels, *spec.cloud))
        self._exact = _index((_key(name), spec) for spec in self.specs for name in (spec.id, *spec.names))
        self._short = _index((_key(name), spec) for spec in self.specs for name in spec.short)
        self._clouds = {name.lower(): count for spec in self.specs for name, count in spec.cloud.items()}
        anchors = _anchors(self.specs)
        self._automaton, self._anchors = ahocorasick_rs.AhoCorasick(list(anchors)), list(anchors.items())
        self._naming = lru_cache(maxsize=256)(self._pattern)

    def _pattern(self, anchors: frozenset[int]) -> re.Pattern[str]:
        """Finds the names with these anchors; one for all of them would take 20 ms to compile."""
        return _mention_pattern({name for anchor in anchors for name in self._anchors[anchor][1].names})

    def find(self, name: str) -> GpuSpec | tuple[GpuSpec, ...] | None:
        """The card of a name; several when the name does not decide (`A100`), to be asked back; None when it is none."""
        found = self._named(name)
        usual = tuple(spec for spec in found if not spec.rare) or found
        return usual[0] if len(usual) == 1 else usual or None

    def devices(self, cloud_type: str) -> int | None:
        """How many devices a cloud's instance type has; None when it is no such type."""
        return self._clouds.get(cloud_type.lower())

    def nearest(self, name: str, count: int = 3) -> tuple[str, ...]:
        """The ids that a mistyped name resembles most, best first."""
        keys = {**{k: v for k, v in self._exact.items() if k}, **self._short}
        close = difflib.get_close_matches(_key(name), keys, n=count, cutoff=0.6)
        return tuple(dict.fromkeys(spec.id for key in close for spec in keys[key]))[:count]

    def by_total(self, total: int) -> tuple[GpuSpec, ...]:
        """Every card that reports about so many bytes, the nearest first; whole cards before slices of one."""
        room = max(_NEAR, int(total * _NEAR_SHARE) if total >= 64 * GIB else 0)
        near = [spec for spec in self.specs if spec.total is not None and _distance(spec, total) <= room]
        return tuple(sorted(near, key=lambda s: (s.part_of is not None, _distance(s, total), not s.verified, abs((s.total or 0) - total))))

    def decide(self, name: str, total: int | None) -> GpuSpec | None:
        """One card from a name and, where the name is shared, the total that torch printed; None when both together do not decide."""
        found = self._named(name)
        if total is not None and len(found) > 1:
            return min(found, key=lambda spec: _distance(spec, total)) if any(_distance(s, total) <= 2 * GIB for s in found) else None
        usual = [spec for spec in found if not spec.rare] or list(found)
        return usual[0] if len(usual) == 1 else None

    def mentions(self, text: str) -> tuple[Mention, ...]:
        """Cards named in a text, in order, each with the count beside it: `2x RTX 3090`, `8xH20`, `dual 4090`, `H100 x8`."""
        return tuple(self._mentions(text))

    def _mentions(self, text: str) -> Iterator[Mention]:
        for match in self._matches(text):
            found = self.find(match["name"])
            if found is None:
                continue
            specs = found if isinstance(found, tuple) else (found,)
            count = self.devices(match["name"]) or _count(match["before"] or match["spaced"] or match["word"] or match["after"])
            yield Mention(specs, count, match[0].strip(), match.start(), match.end())

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        lower = text.lower()
        if len(lower) != len(text):  # a letter that grows when lowered would shift every position
            yield from self._naming(frozenset(range(len(self._anchors)))).finditer(text)
            return
        places = list(self._places(lower))
        pattern = self._naming(frozenset(anchor for anchor, _ in places))
        done = 0
        for start in sorted(start for _, start in places):
            if start < done:
                continue
            begins = _BEGINS.finditer(text, max(done, start - _LONGEST), start + 1)
            match = next((match for begin in begins if (match := pattern.match(text, begin.start())) is not None), None)
            if match is not None:
                yield match
                done = match.end()

    def _places(self, lower: str) -> Iterator[tuple[int, int]]:
        """Each anchor that may be a name's, and where it begins."""
        for anchor, start, end in self._automaton.find_matches_as_indexes(lower, overlapping=True):
            (text, (glued, _)), before = self._anchors[anchor], lower[start - 1 : start]
            bare = text.isdigit()
            if (before in glued or not (bare or before.isalnum())) and not (bare and lower[end : end + 1].isdigit()):
                yield anchor, start

    def _named(self, name: str) -> tuple[GpuSpec, ...]:
        return self._labels.get(name.lower()) or self._exact.get(_key(name)) or self._by_words(name)

    def _by_words(self, name: str) -> tuple[GpuSpec, ...]:
        words = _words(name)
        size = next((float(m[1]) for word in words if (m := _SIZED.match(word))), None)
        bare = [word for word in words if not _SIZED.match(word)]
        cards = self._short.get("".join(bare)) or self._short.get("".join(word for word in bare if not _FORM.match(word))) or ()
        fitting = tuple(spec for spec in cards if size is None or abs(size - spec.nominal_gb) <= 0.12 * spec.nominal_gb)
        return fitting or cards


def _words(name: str) -> list[str]:
    text = re.sub(r"\((?:r|tm)\)", " ", name.lower())
    text = re.sub(r"(?<=\d)\s+(?=(?:gib|gb|g)\b)", "", text)
    return [word for word in re.findall(r"[a-z0-9.]+", text) if word not in _NOISE]


def _key(name: str) -> str:
    return "".join(_words(name))


def _index(pairs: Iterable[tuple[str, GpuSpec]]) -> dict[str, tuple[GpuSpec, ...]]:
    table: dict[str, dict[str, GpuSpec]] = {}
    for key, spec in pairs:
        table.setdefault(key, {})[spec.id] = spec
    return {key: tuple(specs.values()) for key, specs in table.items()}


def _distance(spec: GpuSpec, total: int) -> int:
    low, high = spec.seen or (spec.total or 0, spec.total or 0)
    return max(low - total, total - high, 0)


_COUNT_WORDS = {"single": 1, "one": 1, "dual": 2, "two": 2, "twin": 2, "double": 2, "three": 3, "quad": 4, "four": 4, "eight": 8}


def _count(text: str | None) -> int | None:
    if not text:
        return None
    return _COUNT_WORDS.get(text.lower()) or int(text)


def _names(specs: Iterable[GpuSpec]) -> Iterator[str]:
    for spec in specs:
        yield from (*spec.short, *spec.names, spec.id, *spec.cloud)


class _Anchor(NamedTuple):
    """Which letters may stand right before an anchor (others are of another word), and the names that it is part of."""

    before: set[str]
    names: set[str]


def _anchors(specs: Iterable[GpuSpec]) -> Mapping[str, _Anchor]:
    """The part of each name that is looked for first: its word with a digit in it, else its longest.

    The space before it may be missing, and an x may count the cards. A bare figure needs one of these: else it is a port or a time.
    """
    found: dict[str, _Anchor] = {}
    for name in _names(specs):
        words = re.split(r"[ _-]", name.lower())
        text = next((word for word in words if len(word) > 1 and any(c.isdigit() for c in word)), max(words, key=len))
        anchor = found.setdefault(text, _Anchor(set("x×* _-"), set()))
        anchor.before.update(word[-1:] for word in words[: words.index(text)][-1:])
        anchor.names.add(name)
    return found


def _mention_pattern(names: Set[str]) -> re.Pattern[str]:
    """A name stands alone as a word. A bare figure (`4090`) or a common word counts only with a number of cards or a maker before it."""
    strong = _alternation(filter(_telling, names)) or "(?!)"
    weak = _alternation(name for name in names if not _telling(name)) or "(?!)"
    size = r"(?:[ _-]?(?:SXM\d?|PCIe?|HBM\d?e?|NVL|OAM)\b)*(?:[ _-]?\(?\d{2,3} ?(?:GB|GiB|G)\b(?: VRAM| each)?\)?)?"
    maker = r"(?:NVIDIA|AMD|Intel\(R\)|Tesla|GeForce|Instinct|Radeon|Jetson)[ _-]"
    number = r"(?P<before>\d{1,3}) ?[x×*] ?"
    spaced = r"(?P<spaced>(?:[2-9]|1[0-9]|[2-9]\d)) (?!NVIDIA|Tesla)"
    word = rf"(?P<word>{'|'.join(_COUNT_WORDS)})[ -]"
    bare = rf"(?(before)(?:{weak})|(?(word)(?:{weak})|(?!)))"
    return re.compile(
        rf"(?<![\w.\-/])(?:{number}|{spaced}|{word})?(?P<name>(?:(?:{maker})*(?:{strong})|{maker}(?:{weak})|{bare}){size})"
        r"s?(?![\w]|-\w|\.\d)(?: ?\(?[x×*] ?(?P<after>\d{1,3})\b)?",
        re.IGNORECASE,
    )


def _telling(name: str) -> bool:
    return any(c.isdigit() for c in name) and any(c.isalpha() for c in name.split()[0]) and not re.match(r"[Bb]\d\d$", name)


def _alternation(names: Iterable[str]) -> str:
    """Longest first, grouped by first letter so that a word costs one look at most of them; space, dash and underscore are one."""
    grouped: dict[str, list[str]] = {}
    for name in sorted(names, key=lambda n: (-len(n), n)):
        grouped.setdefault(name[0].lower(), []).append(name)
    return "|".join(f"{re.escape(first)}(?:{'|'.join(_loose(name[1:]) for name in group)})" for first, group in sorted(grouped.items()))


def _loose(name: str) -> str:
    return "[ _-]?".join(re.escape(part) for part in re.split(r"[ _-]", name))


def _spec(row: _Row) -> GpuSpec:
    total = row.total_bytes or (None if row.total_gib is None else round(row.total_gib * GIB))
    seen = None if row.seen_gib is None else (round(row.seen_gib[0] * GIB), round(row.seen_gib[1] * GIB))
    return GpuSpec(
        id=row.id, vendor=row.vendor, compute=row.compute, names=tuple(row.names), short=tuple(row.short), labels=tuple(row.labels),
        cloud=row.cloud, nominal_gb=row.nominal_gb, total=total, seen=seen, smi=None if row.smi_mib is None else row.smi_mib * MIB,
        fp8=row.fp8, unified=row.unified, rare=row.rare, verified=row.verified, part_of=row.part_of, note=row.note,
    )  # fmt: skip


@cache
def load_gpus(folder: Path | None = None) -> Gpus:
    """The cards of a rules folder; RulebookError naming every row that is wrong."""
    path = (folder or rules_folder()) / "gpus.toml"
    try:
        rows: list[dict[str, Any]] = rtoml.load(path)["gpu"]
    except (OSError, ValueError, KeyError) as error:
        raise RulebookError([f"gpus.toml: no [[gpu]] rows could be read from {path}: {error}"]) from error
    specs: dict[str, GpuSpec] = {}
    problems: list[str] = []
    for row in rows:
        label = row.get("id", "without id")
        try:
            spec = _spec(msgspec.convert(row, _Row))
        except msgspec.ValidationError as error:
            problems.append(f"gpus.toml: [[gpu]] {label}: {error}")
            continue
        problems += [f"gpus.toml: [[gpu]] {label}: {problem}" for problem in _problems(spec, specs)]
        specs[spec.id] = spec
    orphans = (spec for spec in specs.values() if spec.part_of and spec.part_of not in specs)
    problems += [f"gpus.toml: [[gpu]] {spec.id}: part_of {spec.part_of!r} is no card" for spec in orphans]
    if problems:
        raise RulebookError(problems)
    return Gpus(specs.values())


def _problems(spec: GpuSpec, before: Mapping[str, GpuSpec]) -> Iterator[str]:
    if spec.id in before:
        yield "the id is taken"
    if spec.total is None and not spec.unified:
        yield "total_gib is missing (only unified memory may leave it to the machine)"
    if spec.total is not None and spec.seen is not None and not spec.seen[0] - GIB // 20 <= spec.total <= spec.seen[1] + GIB // 20:
        yield "total_gib lies outside seen_gib"
