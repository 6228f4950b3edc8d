"""Which engine speaks, in which version: as printed, or narrowed from wording, source lines and defaults that only some versions have."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.domain.deployment import Setting
from bot.domain.engines import ENGINES
from bot.domain.evidence import Fact, Frame, LogLine
from bot.domain.known import Known
from bot.rulebook.book import Rulebook
from bot.rulebook.patterns import search

_FOLDERS = tuple((folder, engine) for engine, known in ENGINES.items() for folder in known.folders)
_PRINTED = (
    ("vllm.engine-config", "vllm.banner-version", "vllm.api-version"),
    ("vllm.dumping-input", "vllm.version-mentioned", "vllm.version-in-brackets", "vllm.version-in-name"),
)
_OWN_CAPTURE = "Capturing CUDA graphs ("  # other engines capture too, and say it otherwise
_NUMBER = re.compile(r"(?<![\d.])0\.\d{1,2}\.\d{1,2}(?:\.\d)?(?:\.?post\d)?(?![\d.]*\d)")
_LEFT = re.compile(
    r"(?i)\b(?:upgrad|updat|bump|mov|switch|go|went)\w* (?:vllm )?from v?(0\.\d{1,2}(?:\.\d{1,2})?(?:\.?post\d)?) to (?:vllm )?v?0\.\d"
)
"""The release that somebody left for a newer one."""
_SPOKEN_OF = re.compile(r"(?<![\w/.-])vllm(?![\w/.-])")
"""In somebody's words; in a path or a name it may be whose code another engine runs."""
_NAME = r"(?:ollama|lm ?studio|koboldcpp|gpt4all|sgl\w*|llama[._ -]?cpp|lmdeploy|tgi|(?:trt|tensorrt)[-_ ]?llm)"
_COMPARED = re.compile(
    rf"(?i)\b(?:work(?:s|ed|ing)?|fine|well|unlike|than|compared)\b(?: \w+){{0,2}} (?:(?:in|with|on|under|using|to) )?[`\"']?{_NAME}\b"
    rf"|\b{_NAME}\b[`\"']? (?:(?:it|that|this) )?(?:works|runs(?! out)|worked|ran(?! out)|can|has no|is fine)\b"
)
"""Said of an engine beside the one that fails."""
_PASSED = re.compile(r"\|[\s*`]*(?i:pass(?:es|ed)?|ok|works|fine|stable|✅)[\s*`]*\|?\s*$")
"""How a row of a table ends whose version is not the one that failed."""
_FOLDER = re.compile(r"(?<!/envs)/vllm[-_]v?(0\.\d{1,2}\.\d{1,2}(?:\.?(?:post|rc)\d+)?)(?=/|\+|-py|\.dist-info)")
"""An environment keeps its name when another release is installed in it."""
_UNTAGGED = re.compile(r"0\.(?:0|1)\.dev\d+\+")
"""A build from sources without their tags counts from nought: it names no release."""
_OWN_FILE = re.compile(r"(?:^|/)vllm/")


def engine_of(book: Rulebook, facts: Sequence[Fact], frames: Sequence[Frame], lines_by_engine: Counter[str]) -> str:
    """The engine with the most telling lines; another engine's own marks outweigh vLLM's, whose code others import. Where none speaks,
    the one that somebody names: a name is also what another is compared with.
    """
    by_rule = {rule.id: rule.engine for rule in book.facts if rule.engine and "engine-named" not in rule.kinds}
    score = Counter(lines_by_engine)
    for fact in facts:
        if fact.id in by_rule:
            score[by_rule[fact.id]] += 1
        score["vllm"] += fact.id == "vllm.capture-begins" and _OWN_CAPTURE in fact.text
    for frame in frames:
        if (named := next((engine for folder, engine in _FOLDERS if folder in f"/{frame.path}"), None)) is not None:
            score[named] += 2
        score["vllm"] += "vllm" in frame.path
    others = [(score[e], e) for e in ENGINES if e != "vllm" and score[e]]
    best = max(others, default=(0, "unknown"))
    if best[0] and best[0] * 2 >= score["vllm"]:
        return best[1]
    if score["vllm"] or (not best[0] and any(_SPOKEN_OF.search(fact.text) for fact in facts if "prose" in fact.kinds)):
        return "vllm"
    if any(fact.id == "foreign.marker" for fact in facts):
        return "unknown"
    names = {rule.id: rule.engine for rule in book.facts if rule.engine and "engine-named" in rule.kinds}
    spoken_of = {names[fact.id] for fact in facts if fact.id in names and not _COMPARED.search(fact.text)}
    return spoken_of.pop() if len(spoken_of) == 1 else "unknown"


def printed_version(facts: Sequence[Fact], engine: str, frames: Sequence[Frame] = ()) -> str | None:
    """The version as the engine printed it; a mention in prose only where it printed none, of a table the row that failed; then the
    name of the folder that a traceback runs in. None for a build whose number names no release.
    """
    if engine not in ("vllm", "unknown"):
        return next((f.fields["version"] for f in facts if f.id == f"{engine}.version" and "version" in f.fields), None)
    for ids in _PRINTED:
        said = [fact for fact in facts if fact.id in ids and _names_a_release(fact.fields.get("version"))]
        if said:
            failed = (fact for fact in said if not (fact.id == "vllm.version-mentioned" and _PASSED.search(fact.text)))
            return str(next(failed, said[0]).fields["version"])
    return next((found[1] for frame in frames if (found := _FOLDER.search(frame.path)) is not None), None)


def version_alone(facts: Sequence[Fact], left: Sequence[Version]) -> str | None:
    """The one release among those left whose number somebody gives without a name; None of none, or of several."""
    alone = [fact for fact in facts if fact.id == "vllm.version-alone"]
    given = {str(fact.fields["version"]) for fact in alone}
    beside = {
        number
        for fact in alone
        for number in _NUMBER.findall(fact.text)
        if parsed(number) in left and number not in _LEFT.findall(fact.text)
    }
    return given.pop() if len(given) == 1 and beside == given else None


def _names_a_release(version: str | None) -> bool:
    return version is not None and not _UNTAGGED.match(version)


def parsed(version: str | None) -> Version | None:
    """A comparable version, or None; a development build counts as the release that it leads to."""
    if version is None:
        return None
    try:
        return Version(Version(version).base_version if ".dev" in version or "rc" in version or "+" in version else version)
    except InvalidVersion:
        return None


@lru_cache(maxsize=4)
def releases_of(book: Rulebook) -> tuple[Version, ...]:
    """Every release that the rulebook knows, oldest first."""
    return tuple(Version(release.version) for release in book.releases)


@dataclass(slots=True)
class Narrowing:
    """The releases that are left, and why the others are not: one sentence for each step that took some away."""

    left: tuple[Version, ...]
    reasons: list[str] = field(default_factory=list)
    _ends: dict[str, str] = field(default_factory=dict)

    def keep(self, agreeing: Sequence[Version], reason: str) -> None:
        """Go on with those that agree; evidence that would leave none is set aside, since a fork or a quotation may speak."""
        both = tuple(v for v in self.left if v in agreeing)
        if both and len(both) < len(self.left):
            self._ends |= {end: reason for end, at in (("first", 0), ("last", -1)) if both[at] != self.left[at]}
            self.left = both
            self.reasons.append(reason)

    def told(self) -> tuple[str, ...]:
        """The reasons, those that set the first and the last release that are left behind the others."""
        return tuple(sorted(self.reasons, key=lambda reason: reason in self._ends.values()))


@lru_cache(maxsize=1024)
def _within(releases: tuple[Version, ...], specifier: str) -> tuple[Version, ...]:
    """The releases inside a PEP 440 range."""
    allowed = SpecifierSet(specifier, prereleases=True)
    return tuple(v for v in releases if v in allowed)


def narrowed(
    book: Rulebook, facts: Sequence[Fact], lines: Sequence[LogLine] = (), frames: Sequence[Frame] = (),
    arguments: Mapping[str, Known[Setting]] | None = None,
) -> Narrowing:  # fmt: skip
    """Every known release, less those that do not say it so, do not print from that source line, or have another default."""
    releases = releases_of(book)
    state = Narrowing(releases)
    marked = _by_marker(book, lines, frames)
    if marked:
        state.keep(marked[0], marked[1])
    for specifier, reason in sorted(_by_wording(book, facts, lines)):
        state.keep(_within(releases, specifier), reason)
    said = {fact.fields["series"]: fact.line for fact in facts if "series" in fact.fields}
    for series, line in said.items() if len(said) == 1 else ():  # of several, which failed nobody knows
        state.keep(_within(releases, f"=={series}.*"), f"line {line}: vLLM {series} is named")
    for specifier, reason in _by_default(book, facts, arguments or {}):
        state.keep(_within(releases, specifier), reason)
    return state


def narrowed_range(book: Rulebook, state: Narrowing) -> tuple[str | None, tuple[str, ...]]:
    """The same as (range of releases, reasons); (None, ()) when nothing narrows it."""
    releases = releases_of(book)
    if len(state.left) == len(releases) or not state.left:
        return None, ()
    after = [v for v in releases if v > state.left[-1]]
    low = f">={state.left[0]}" if state.left[0] != releases[0] else ""
    text = ",".join(part for part in (low, f"<{_up_to(after[0], state.left[-1])}" if after else "") if part)
    return (text, state.told()) if text else (None, ())


def _up_to(after: Version, last: Version) -> str:
    """The first release that is out: where a post-release is known of it alone, the one that it mends says what it says."""
    return after.base_version if Version(after.base_version) > last else str(after)


def _by_wording(book: Rulebook, facts: Sequence[Fact], lines: Sequence[LogLine]) -> set[tuple[str, str]]:
    ranges = {rule.id: rule.vllm for rule in book.facts if rule.vllm}
    found = {(ranges[f.id], f"line {f.line}: a message of vLLM {ranges[f.id]}") for f in facts if f.id in ranges}
    texts: dict[str, dict[str, int]] = {}
    for fact in facts:
        texts.setdefault(fact.id, {}).setdefault(fact.text, fact.line)
    for line in lines:
        if line.speaker.label:
            texts.setdefault("", {}).setdefault(line.speaker.label, line.number)
    for wording in book.wordings:
        number = next((n for text, n in texts.get(wording.fact, {}).items() if search(wording.pattern, text)), None)
        if number is not None:
            found.add((wording.vllm, f"line {number}: said as vLLM {wording.vllm} says it"))
    return found


def _by_marker(book: Rulebook, lines: Sequence[LogLine], frames: Sequence[Frame]) -> tuple[list[Version], str] | None:
    """Releases of the minor series whose known source lines occur most often."""
    seen = {f"{line.file.rsplit('/', 1)[-1]}:{line.file_line}" for line in lines if line.file and line.file_line}
    seen |= {f"{f.path.rsplit('/', 1)[-1]}:{f.file_line}" for f in frames if f.file_line and _OWN_FILE.search(f.path)}
    hits: dict[tuple[int, ...], set[str]] = {}
    for release in book.releases:
        if common := seen.intersection(release.markers):
            hits.setdefault(Version(release.version).release[:2], set()).update(common)
    if not hits:
        return None
    most = max(len(markers) for markers in hits.values())
    series = {key for key, markers in hits.items() if len(markers) == most}
    shown = ", ".join(sorted(set[str]().union(*(hits[key] for key in series)))[:3])
    return [v for v in releases_of(book) if v.release[:2] in series], f"{shown}: source lines of vLLM {' or '.join(_series(series))}"


def _series(keys: set[tuple[int, ...]]) -> list[str]:
    return [".".join(map(str, key)) for key in sorted(keys)]


def _by_default(book: Rulebook, facts: Sequence[Fact], arguments: Mapping[str, Known[Setting]]) -> list[tuple[str, str]]:
    """A printed value that nobody set is the version's default, where the start command or its arguments are in the paste."""
    if not arguments:
        return []
    found = []
    for rule in book.arguments:
        field_name = "utilization" if rule.name == "gpu_memory_utilization" else rule.name
        printed = next((f for f in facts if field_name in f.fields), None)
        if not rule.default or rule.name in arguments or printed is None:
            continue
        value = printed.fields[field_name]
        agreeing = [specifier for specifier, default in rule.default.items() if default == value]
        if len(agreeing) == 1:
            found.append((agreeing[0], f"line {printed.line}: {rule.name} is {value}, the default of vLLM {agreeing[0]}"))
    return found
