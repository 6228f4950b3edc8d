"""Which engine speaks, in which version: as printed, or narrowed from wording that only some versions use."""

from collections import Counter
from collections.abc import Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from bot.domain.evidence import Fact, Frame
from bot.rulebook.book import Rulebook

ENGINES_OVER_VLLM = ("sglang", "tensorrt-llm", "tgi", "lmdeploy", "llama.cpp")
_RELEASES = (
    "0.1.2 0.2.7 0.3.3 0.4.0.post1 0.4.2 0.4.3 0.5.0.post1 0.5.1 0.5.3.post1 0.5.4 0.5.5 0.6.0 0.6.1.post2 0.6.2 0.6.3.post1 0.6.4.post1 "
    "0.6.5 0.6.6.post1 0.7.0 0.7.1 0.7.2 0.7.3 0.8.0 0.8.1 0.8.2 0.8.3 0.8.4 0.8.5.post1 0.9.0.1 0.9.1 0.9.2 0.10.0 0.10.1.1 0.10.2 0.11.0 "
    "0.11.1 0.11.2 0.12.0 0.13.0 0.14.0 0.14.1 0.15.0 0.15.1 0.16.0 0.17.0 0.17.1 0.18.0 0.18.1 0.19.0 0.19.1 0.20.0 0.20.2 0.21.0 0.22.0 "
    "0.22.1 0.23.0 0.24.0 0.25.0 0.25.1 0.26.0 0.27.0 0.27.1 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0 0.33.0"
).split()
RELEASES = tuple(Version(v) for v in _RELEASES)


def engine_of(book: Rulebook, facts: Sequence[Fact], frames: Sequence[Frame], lines_by_engine: Counter[str]) -> str:
    """The engine with the most telling lines; another engine's own marks outweigh vLLM's, whose code others import."""
    by_rule = {rule.id: rule.engine for rule in book.facts if rule.engine}
    score = Counter(lines_by_engine)
    for fact in facts:
        if fact.id in by_rule:
            score[by_rule[fact.id]] += 1
    for frame in frames:
        for needle, engine in (("/sglang/", "sglang"), ("/tensorrt_llm/", "tensorrt-llm"), ("/text_generation_server/", "tgi"), ("/lmdeploy/", "lmdeploy")):
            score[engine] += 2 * (needle in frame.path)
        score["vllm"] += "vllm" in frame.path
    others = [(score[e], e) for e in ENGINES_OVER_VLLM if score[e]]
    best = max(others, default=(0, "unknown"))
    if best[0] and best[0] * 2 >= score["vllm"]:
        return best[1]
    return "vllm" if score["vllm"] else "unknown"


def printed_version(facts: Sequence[Fact], engine: str) -> str | None:
    """The version as the engine printed it; a mention in prose only where it printed none."""
    if engine not in ("vllm", "unknown"):
        return next((f.fields["version"] for f in facts if f.id == f"{engine}.version" and "version" in f.fields), None)
    for ids in (("vllm.engine-config", "vllm.banner-version", "vllm.api-version"), ("vllm.dumping-input", "vllm.version-mentioned")):
        for fact in facts:
            if fact.id in ids and "version" in fact.fields:
                return str(fact.fields["version"])
    return None


def parsed(version: str | None) -> Version | None:
    """A comparable version, or None; a development build counts as the release that it leads to."""
    if version is None:
        return None
    try:
        return Version(Version(version).base_version if ".dev" in version or "rc" in version or "+" in version else version)
    except InvalidVersion:
        return None


def narrowed_range(book: Rulebook, facts: Sequence[Fact]) -> str | None:
    """The releases whose wording agrees with every message that was matched, as a range; None when nothing narrows it."""
    wanted = {rule.id: rule.vllm for rule in book.facts if rule.vllm}
    ranges = {wanted[f.id] for f in facts if f.id in wanted}
    left = list(RELEASES)
    for text in sorted(ranges):
        agreeing = [v for v in left if v in SpecifierSet(text, prereleases=True)]
        left = agreeing or left
    if len(left) == len(RELEASES) or not left:
        return None
    after = [v for v in RELEASES if v > left[-1]]
    low = f">={left[0]}" if left[0] != RELEASES[0] else ""
    high = f"<{after[0]}" if after else ""
    return ",".join(part for part in (low, high) if part) or None
