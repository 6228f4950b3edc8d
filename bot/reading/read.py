"""The order of work: contributions in, Evidence out. Pure, and the same every time."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from bot.domain.deployment import Deployment, Setting
from bot.domain.engines import ENGINES
from bot.domain.evidence import Evidence, Fact, LogLine
from bot.domain.incident import ABOUT_THE_RANK, NOT_KNOWN, READ_LIKE_A_PASTE, Contribution
from bot.domain.known import Known
from bot.reading.facts import read_facts
from bot.reading.flags import read_arguments
from bot.reading.inventory import read_inventory
from bot.reading.large import condensed, numbered
from bot.reading.launch import launches
from bot.reading.lines import sign
from bot.reading.models import model_named
from bot.reading.ranks import attention_is_split, grid_of, ranks_of
from bot.reading.select import MANY
from bot.reading.text import harmless, split_lines
from bot.reading.tracebacks import without_library_code
from bot.reading.trials import that_failed
from bot.reading.versions import engine_of, narrowed, narrowed_range, printed_version, version_alone
from bot.rulebook.book import Rulebook

LONG_ANSWER = 160
"""Letters from which an answer is evidence, whatever was asked."""


def read(book: Rulebook, contributions: Sequence[Contribution], earlier: int = 0) -> Evidence:
    """Everything that was contributed, read anew from the first line. The first `earlier` contributions are of a run before this one,
    where a later one brings a log.
    """
    lines: list[LogLine] = []
    quoted: dict[tuple[int, int], str] = {}
    redactions = 0
    for source, contribution in enumerate(_sources(contributions), start=1):
        redactions += contribution.redactions
        given = list(numbered(_bounded(split_lines(contribution.text or ""))))
        lines += sign(book, source, given)
        texts = [text for _, text in given]
        shown = texts if "".join(texts).isprintable() else harmless("\n".join(texts)).split("\n")
        quoted.update(((source, number), text) for (number, _), text in zip(given, shown, strict=True))
    before = len(_sources(contributions[:earlier]))
    since = before + 1 if len(_sources(contributions)) > before else 1
    facts, frames = read_facts(book, lines)
    facts = _without_asides(book, contributions, facts)
    arguments, tried, environment, by_hand = read_arguments(book, without_library_code(lines, frames))
    deployment = replace(_deployment(book, lines, facts, arguments, tried, environment), given=by_hand)
    grid = grid_of(lines, facts, deployment)
    engine = engine_of(book, facts, frames, Counter(_engine_by_signature(lines, quoted)))
    version = printed_version(facts, engine, frames)
    allowed: str | None = None
    because: tuple[str, ...] = ()
    if version is None and engine == "vllm":
        state = narrowed(book, facts, lines, frames, arguments)
        version = version_alone(facts, state.left)
        if version is None:
            allowed, because = narrowed_range(book, state)
    return Evidence(
        facts=tuple(facts), frames=tuple(frames), deployment=deployment, engine=engine,
        ranks=ranks_of(lines, facts, grid, shared_dp=attention_is_split(engine, lines, facts, deployment)),
        engine_version=version, engine_version_range=allowed, version_because=because,
        lines=quoted, answers=_answers(contributions), ranks_said=_ranks_said(contributions), redactions=redactions,
        cut=any(one.truncated for one in contributions), grid=grid,
        speakers=tuple(_first_lines(lines).values()),
        errors=tuple(line for line in lines if line.level in ("ERROR", "CRITICAL", "E")), since=since,
    )  # fmt: skip


def _first_lines(lines: Sequence[LogLine]) -> dict[str, LogLine]:
    first: dict[str, LogLine] = {}
    for line in lines:
        first.setdefault(line.speaker.key, line)
    return first


def _bounded(lines: list[str]) -> list[str]:
    """The lines themselves, or the telling ones where there are very many."""
    return lines if len(lines) <= MANY else split_lines(condensed(lines)[0])


def _sources(contributions: Sequence[Contribution]) -> list[Contribution]:
    """Pastes and files, and answers that are evidence themselves: a command, a version, lines of a log."""
    found = []
    for one in contributions:
        if not one.text:
            continue
        name, mark, value = one.text.partition("=")
        if one.kind in ("paste", "file"):
            found.append(one)
        elif one.kind == "answer" and mark and name.strip() in READ_LIKE_A_PASTE and value.strip() not in ("", NOT_KNOWN):
            found.append(replace(one, text=value, name=name.strip()))
        elif one.kind == "answer" and len(one.text) > LONG_ANSWER:
            found.append(one)
    return found


def _without_asides(book: Rulebook, contributions: Sequence[Contribution], facts: Sequence[Fact]) -> list[Fact]:
    """The facts without what an answer about the load says of a moment: it tells what is asked of the server, unless it names a failure."""
    moments = {moment.id for moment in book.moments}
    of_load = {n for n, one in enumerate(_sources(contributions), start=1) if one.name == "workload"}
    if not of_load:
        return list(facts)
    of_load -= {fact.source for fact in facts if fact.kinds & {"says-oom", "says-failure"}}
    return [fact for fact in facts if fact.source not in of_load or fact.id not in moments]


def _answers(contributions: Sequence[Contribution]) -> dict[str, str]:
    """name=value answers, the newest of each name."""
    pairs = (c.text.partition("=") for c in contributions if c.kind == "answer" and c.text and len(c.text) <= LONG_ANSWER)
    return {name.strip().lower().replace("-", "_"): value.strip() for name, mark, value in pairs if mark}


def _ranks_said(contributions: Sequence[Contribution]) -> tuple[str, ...]:
    """What each person said last of the rank that failed; who does not know says nothing."""
    newest: dict[str | None, str] = {}
    for one in contributions:
        name, _, value = (one.text or "").partition("=")
        short = one.kind == "answer" and len(one.text or "") <= LONG_ANSWER
        if short and name.strip().lower().replace("-", "_") in ABOUT_THE_RANK and value.strip() not in ("", NOT_KNOWN):
            newest[one.author] = value.strip()
    return tuple(newest.values())


_SIGNS = ("Worker", "EngineCore", "VllmWorker", "APIServer")


def _engine_by_signature(lines: Sequence[LogLine], quoted: Mapping[tuple[int, int], str]) -> list[str]:
    found = []
    for line in lines:
        label = line.speaker.label
        if label in ENGINES:
            found.append(label)
        elif label.startswith("rank ") and "[TRT-LLM]" in quoted[line.source, line.number]:
            found.append("tensorrt-llm")
        if (label and label.startswith(_SIGNS)) or (line.level and line.file and line.file.endswith("py")):
            found.append("vllm")
    return found


_SAID = {
    "max_model_len": "max_model_len",
    "max_num_seqs": "max_num_seqs",
    "gpu_memory_utilization": "utilization",
    "kv_cache_memory_bytes": "pinned",
    "free_gpu_memory_fraction": "fraction",
}
"""Arguments that messages repeat, and the field that holds them."""


def _deployment(
    book: Rulebook, lines: Sequence[LogLine], facts: Sequence[Fact], given: Mapping[str, Known[Setting]],
    tried: Mapping[str, tuple[Setting, ...]], environment: Mapping[str, Known[Setting]],
) -> Deployment:  # fmt: skip
    arguments = dict(given)
    for fact in facts:
        for name, field in _SAID.items():
            if field in fact.fields and name not in arguments:
                arguments[name] = Known(fact.fields[field], "log", fact.source, fact.line)
    arguments |= that_failed(facts, arguments)
    if (length := arguments.get("max_seq_len_trt")) is not None:
        arguments.setdefault("max_model_len", length)
    gpu, count, host, launcher = read_inventory(lines, facts)
    model = arguments.pop("model", None)
    return Deployment(
        model=model_named(book, lines, facts, model), gpu=gpu, gpu_count=count, arguments=arguments, environment=environment,
        tried=dict(tried), host=host, launcher=launcher, commands=launches(book, lines),
    )  # fmt: skip
