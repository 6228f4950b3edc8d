"""What a reader should know about the figures: how the version is known, whose they are, and what does not add up."""

import re
from collections.abc import Iterator, Sequence

from bot.diagnosis.command import MANY, engines_started, hinted
from bot.diagnosis.defaults import possible_defaults
from bot.diagnosis.failing import answered_rank, ranks_said
from bot.diagnosis.first_error import CAN_BE_FIRST
from bot.diagnosis.ledger import smallest
from bot.diagnosis.scene import Scene
from bot.diagnosis.size_command import size_command
from bot.diagnosis.values import ranks_seen
from bot.diagnosis.weights import by_name
from bot.domain.diagnosis import FirstError, Phase, Remedy, ReportedBudget
from bot.domain.engines import ENGINES
from bot.domain.evidence import Evidence, Fact
from bot.domain.rank import Rank, named
from bot.domain.size import gib
from bot.rulebook.book import Rulebook
from bot.rulebook.versions import UnknownVersion, holds

MOST_PROCESSES = 3
_WELL_BEYOND = 1.4
MOST_REASONS = 2
"""The last steps took the most away."""


def notes_of(
    book: Rulebook,
    scene: Scene,
    phase: Phase,
    rank: Rank | None,
    budgets: Sequence[ReportedBudget],
    change: Remedy | None,
    why_rank: str,
) -> tuple[str, ...]:
    """A sentence each, the most useful first. `change`: the one that is advised; `why_rank`: a sentence on
    how the rank is known, where no line names it.
    """
    evidence, facts = scene.evidence, scene.facts
    return (
        *_answer(evidence, rank),  # who gave it looks for it
        *_orphans(evidence),
        *_cut(scene, phase),
        *((why_rank,) if why_rank else ()),
        *_sizing(scene, phase),
        *_foreign(evidence, facts),
        *_written_for(evidence, change),
        *_container_killed(evidence),
        *_came_up(scene),
        *_preempted(scene, phase),
        *_more_was_free(scene.error),
        *_limits(phase, rank, budgets),
        *_engine_answered(book, evidence),
        *_tenants(evidence, facts, change),
        *_counted_from_default(book, evidence, change),
        *_counted_from_figures(evidence, facts, change),
        *_counted_from_card(scene, change),
        *_beyond_its_share(scene, phase),
        *_of_command(evidence, change),
        *_bare_override(scene),
        *_version(evidence),
        *_too_old(book, evidence, change),
        *_borrowed(budgets, rank),
        *_unclosed(budgets),
    )


def _cut(scene: Scene, phase: Phase) -> Iterator[str]:
    """What the change rests on where the error itself is not shown."""
    if scene.unexplained(phase):
        yield (
            "No line here says that memory ran out. The change is the one for a shortage in this phase: "
            "if the error says something else, leave it."
        )


def _sizing(scene: Scene, phase: Phase) -> Iterator[str]:
    """What `oombot size` has to do with it: it says whether a model and cards that are named go together."""
    size = size_command(scene)
    if phase in ("unknown", "weight_loading") and not {"MODEL", "NAME"} & set(size.split()):
        yield f"`{size}` says whether this model goes onto these cards, and what is left for its cache."


def _answer(evidence: Evidence, rank: Rank | None) -> Iterator[str]:
    """Answers about the rank that are not followed, and why."""
    answers, followed = ranks_said(evidence), answered_rank(evidence)
    signed = rank if rank is not None and rank.number is not None and rank.basis != "answer" else None
    left = [f"{said[:60]!r}" for said, named in answers.items() if signed is None or named != signed.number]
    which = f"The answer{'s' if len(left) > 1 else ''} {' and '.join(left)}"
    if signed is not None and left:
        verb = "are" if len(left) > 1 else "is"
        yield f"{which} {verb} not followed: what failed signs as {signed.label}, which is rank {signed.number}."
    elif followed is None and len(left) > 1:
        said_apart = [f"{said[:60]!r}" if named is None else f"rank {named}" for said, named in answers.items()]
        yield f"The answers {' and '.join(said_apart)} differ, so none is followed: the line of the first error settles it."
    elif followed is None and left:
        sizes = f" below {evidence.grid.world}, the number of ranks here" if evidence.grid.world else ""
        yield f"{which} names no one rank: it takes one number{sizes}."


def _limits(phase: Phase, rank: Rank | None, budgets: Sequence[ReportedBudget]) -> Iterator[str]:
    """Which rank's pool the check went by, which itself is of no rank."""
    pools = {row.figures["kv_cache_bytes"] for row in budgets if "kv_cache_bytes" in row.figures}
    least = smallest(budgets)
    if phase == "kv_cache_sizing" and rank is None and least is not None and len(pools) > 1:
        who = named(least.rank, least.label) or least.label
        yield f"The check goes by the smallest pool: {gib(least.figures['kv_cache_bytes'])}, that of {who}."


def _engine_answered(book: Rulebook, evidence: Evidence) -> Iterator[str]:
    """An answer that names another engine than the one that the paste starts."""
    engine = evidence.engine
    if engine not in ENGINES or engine not in evidence.answers.get("engine_version", "").lower():
        return
    started = next((names for text in evidence.lines.values() if (names := engines_started(book, [text]))), [engine])
    if engine not in started:
        yield f"The answer says {ENGINES[engine].name} and is followed, though the paste starts {ENGINES[started[0]].name}."


def _foreign(evidence: Evidence, facts: Sequence[Fact]) -> Iterator[str]:
    if evidence.engine == "unknown" and any("foreign-engine" in fact.kinds for fact in facts):
        yield "This engine's stages and flags are not known here: the advice holds for any engine, and its own manual names the setting."


def _written_for(evidence: Evidence, change: Remedy | None) -> Iterator[str]:
    """Whose flags a change names where no line names the engine."""
    if evidence.engine == "unknown" and change is not None and (change.command or "").startswith("vllm "):
        yield "No line names the engine: the change is written in vLLM's flags."


_CONTAINER = re.compile(r"\s{0,4}([a-z0-9][a-z0-9-]{0,62}):\s*$")
"""How `kubectl describe pod` heads what it says of one container; its own words begin with a capital letter."""


def _container_killed(evidence: Evidence) -> Iterator[str]:
    """Which container of a pod was killed, where its description lists several."""
    kill = next((f for f in evidence.facts if "host-kill" in f.kinds and "Reason:" in f.text), None)
    headed = {} if kill is None else {n: m[1] for (s, n), t in evidence.lines.items() if s == kill.source and (m := _CONTAINER.match(t))}
    if kill is not None and len(set(headed.values())) > 1 and (above := [line for line in headed if line < kill.line]):
        yield f"The container that was killed is {headed[max(above)]} (line {kill.line})."


def _preempted(scene: Scene, phase: Phase) -> Iterator[str]:
    """That the pool was too small for what ran, where that is all that went wrong."""
    counted = (f for f in scene.facts if f.id == "not-oom.preemption" or f.fields.get("preempted") or f.fields.get("preemptions"))
    if phase == "not_oom" and (full := next(counted, None)) is not None:
        yield (
            f"Requests were preempted (line {full.line}): the pool was full, so they wait and are computed anew; none fails of it. "
            "`oombot explain preemption` says what lessens it."
        )


def _came_up(scene: Scene) -> Iterator[str]:
    """A later start that held."""
    if (up := scene.first("derived.came-up-later")) is not None:
        yield f"By line {up.line} an engine came up afterwards: what failed is the start before it."


def _more_was_free(error: FirstError | None) -> Iterator[str]:
    """How a request can fail although more is reported free than it asked for."""
    figures = error.figures if error is not None else {}
    tried, free = figures.get("tried_bytes"), figures.get("free_bytes")
    if tried and free and free >= tried and not (figures.get("allowed_bytes") or free > 50 * tried):
        yield (
            f"More was free ({gib(free)}) than was asked for ({gib(tried)}): free memory is read after the request has failed, and the "
            "driver cannot give out the last of it."
        )


def _orphans(evidence: Evidence) -> Iterator[str]:
    """What outlived its server holds the card against the next start."""
    left = next((f for f in evidence.facts if "orphaned" in f.kinds), None)
    if left is not None:
        yield (
            f"Line {left.line} says that processes outlived their server: they keep their memory, and the next start finds the card full. "
            "`oombot explain not-released` says how to find and end them."
        )


def _bare_override(scene: Scene) -> Iterator[str]:
    """A flag that has lost its value, and what it does with one."""
    bare = scene.first("vllm.bare-override")
    if bare is not None:
        yield (
            f"--num-gpu-blocks-override stands without a value in line {bare.line}. With one it sets the pool's size, and no fraction "
            "changes what the card holds: take it out of the start."
        )


def _tenants(evidence: Evidence, facts: Sequence[Fact], change: Remedy | None) -> Iterator[str]:
    """Who else is on the card, where that matters: as nvidia-smi in the same paste says, or how to find out."""
    held = next((f for f in facts if f.id == "derived.others-hold"), None)
    failed = any(f.kinds & CAN_BE_FIRST for f in evidence.facts)
    if held is None and failed and (change is None or change.id != "stop-other-process"):
        return
    how_much = f"{held.fields['who']} {gib(held.fields['bytes'])} of this card (line {held.line})" if held is not None else ""
    listed = sorted((f for f in evidence.facts if "card-process" in f.kinds), key=lambda f: -f.fields["held"])[:MOST_PROCESSES]
    if listed:
        yield f"nvidia-smi shows {', '.join(map(_process, listed))}{f': {how_much[:1].lower()}{how_much[1:]}' if how_much else ''}."
    elif empty := next((f for f in evidence.facts if f.id == "smi.no-process"), None):
        yield (
            f"{how_much + ', and ' if how_much else ''}nvidia-smi (line {empty.line}) lists no process. It does not see those of other "
            "containers and users, and it was perhaps asked after the crash: ask it on the host, just before the start."
        )
    elif how_much:
        yield f"{how_much}: nvidia-smi on the host names them."


def _process(fact: Fact) -> str:
    card = f" on GPU {fact.fields['card']}" if "card" in fact.fields else ""
    return f"{fact.fields['process']} (pid {fact.fields['pid']}, {gib(fact.fields['held'])}{card}, line {fact.line})"


_COUNTED = "The fraction in force is not in the paste: {} is counted from {}. If you set another one, go down or up from that by as much."


def _counted_from_default(book: Rulebook, evidence: Evidence, change: Remedy | None) -> Iterator[str]:
    """What the value of vLLM's fraction was counted from, where nobody printed the one in force."""
    if change is None or change.flag != "--gpu-memory-utilization" or change.value is None:
        return
    if evidence.deployment.number("gpu_memory_utilization") is None and not any("utilization" in f.fields for f in evidence.facts):
        version = f"vLLM {evidence.engine_version}" if evidence.engine_version else "these versions"
        fractions = possible_defaults(book, evidence, "gpu_memory_utilization")
        one = f"{fractions[0]:.2f}, the default of {version}" if len(fractions) == 1 else ""
        yield _COUNTED.format(change.value, one or "the default, 0.90 up to vLLM 0.19 and 0.92 from 0.20")


def _counted_from_figures(evidence: Evidence, facts: Sequence[Fact], change: Remedy | None) -> Iterator[str]:
    """The same of SGLang's fraction, which its own figures imply."""
    if change is None or change.flag != "--mem-fraction-static" or evidence.deployment.number("mem_fraction_static") is not None:
        return
    implied = next((f for f in facts if f.id == "derived.implied-mem-fraction"), None)
    if implied is not None:
        of = implied.fields
        yield (
            f"By this log the fraction is {of['value']:.2f}, though it is not printed: of {of['before']} that were free before the "
            f"weights, {of['after']} were left beside the pool (line {implied.line})."
        )
    elif change.value is not None:
        yield _COUNTED.format(change.value, "what SGLang takes by itself, about 0.88")


def _counted_from_card(scene: Scene, change: Remedy | None) -> Iterator[str]:
    """How many ranks there are, where only the index of the card that failed, or a tag, shows it."""
    evidence, gpu = scene.evidence, scene.error_fact.fields.get("gpu") if scene.error_fact is not None else None
    said = evidence.deployment.number("tensor_parallel_size") or evidence.grid.tp or evidence.deployment.gpu_count
    least = ranks_seen(scene)
    if change is None or change.flag != "--tensor-parallel-size" or said or least < 2:
        return
    by = f"GPU {gpu} failed (line {scene.error_fact.line})" if scene.error_fact is not None and isinstance(gpu, int) else None
    worker = next((line for line in evidence.speakers if line.speaker.parts.keys() & {"tp", "rank"}), None)
    by = by or (f"there is a {worker.speaker.label} (line {worker.number})" if worker is not None else "there are several workers")
    yield f"How many cards are in use is not in the paste: {by}, so {least} at least. If yours are more, go up from that."


def _beyond_its_share(scene: Scene, phase: Phase) -> Iterator[str]:
    """Where so much was allocated that it is not the rank's share of the weights alone."""
    whole, ranks = by_name(scene), scene.evidence.deployment.number("tensor_parallel_size")
    held = scene.error.figures.get("allocated_bytes") if scene.error is not None else None
    share = None if whole is None or not ranks or ranks < 2 else whole / ranks / (scene.evidence.grid.pp or 1)
    if phase == "weight_loading" and share is not None and held is not None and held > _WELL_BEYOND * share:
        yield (
            f"By the model's name its weights take about {gib(round(share))} on each of {int(ranks or 1)} ranks, and {gib(held)} were "
            "allocated: they are not spread over the ranks, or it had loaded already."
        )


def _of_command(evidence: Evidence, change: Remedy | None) -> Iterator[str]:
    """What the command that stands there does not hold: whatever was not in the paste, a size that only tags hint at, a secret's value."""
    if change is None or change.flag is None or change.flag.lstrip("-").isupper():
        return
    by = next((f for kind in ("other-launcher", "trainer") for f in evidence.facts if kind in f.kinds), None)
    if change.command is None:
        if by is not None and not evidence.deployment.commands and change.flag.startswith("-"):
            who = f"{by.fields.get('program', 'a trainer')}, line {by.line}"
            yield f"Another program starts the engine here ({who}): it may write {change.flag} in its own way."
        return
    if "[hidden]" in change.command:
        yield "[hidden] in the command stands for a secret that is not kept: put yours in."
    if evidence.deployment.commands:
        return
    yield "The command is put together from what the paste says: flags that you gave and that are not in it stay as they are."
    for name, least in hinted(evidence).items():
        if f" {MANY[name]} " in f"{change.command} ":
            of = name.removesuffix("_parallel_size")
            yield f"{MANY[name]} in the command stands for the number of {of}-parallel ranks: their tags show {least} or more."


def _version(evidence: Evidence) -> Iterator[str]:
    if evidence.engine_version_range and evidence.version_because:
        reasons = "; ".join(evidence.version_because[-MOST_REASONS:])
        yield f"No release is printed. It is vLLM {evidence.engine_version_range.replace(',', ', ')} by what the log says ({reasons})."


def _too_old(book: Rulebook, evidence: Evidence, change: Remedy | None) -> Iterator[str]:
    """A release from before those that are known: what it has is guessed."""
    oldest = book.releases[0].version
    if change is None or change.flag is None:
        return
    try:
        if evidence.engine == "vllm" and evidence.engine_version is not None and holds(f"<{oldest}", evidence.engine_version):
            yield f"vLLM {evidence.engine_version} is older than {oldest}, the first that is known here: see that it has the flag."
    except UnknownVersion:
        return


def _borrowed(budgets: Sequence[ReportedBudget], rank: Rank | None) -> Iterator[str]:
    failing = next((b for b in budgets if rank is not None and rank.number is not None and b.rank == rank.number), None)
    if failing is not None and failing.reported_by_rank is not None and failing.reported_by_rank != failing.rank:
        yield (
            f"Only rank {failing.reported_by_rank} printed a memory report, as this version does: its figures need not be those of "
            f"rank {failing.rank}."
        )


def _unclosed(budgets: Sequence[ReportedBudget]) -> Iterator[str]:
    for row in budgets:
        who = f"rank {row.rank}" if row.rank is not None else row.label
        if row.closes is False and row.residual_bytes is not None:
            side = "are in no reported term" if row.residual_bytes > 0 else "are reported twice or beyond the budget"
            yield f"The terms that {who} reports do not add up to its budget: {gib(abs(row.residual_bytes))} {side}."
        elif row.closes is None and row.residual_bytes is not None and "graph_estimate_bytes" in row.missing:
            yield (
                f"{gib(row.residual_bytes)} of the budget of {who} are in no reported term: this version takes an estimate for CUDA graphs "
                "out of the budget, and that line (Estimated CUDA graph memory) is not in the paste."
            )
