"""At most two questions, each of which would change the verdict or the first change, each with the command that answers it."""

from collections.abc import Iterator

from bot.diagnosis.first_error import in_words
from bot.diagnosis.partition import layers_wanted
from bot.diagnosis.scene import Scene, holds
from bot.diagnosis.values import ranks_unsaid
from bot.domain.diagnosis import FollowUp, Phase
from bot.domain.rank import Rank
from bot.rulebook.book import Rulebook
from bot.rulebook.files import QuestionRule

MOST = 2


def questions(book: Rulebook, scene: Scene, phase: Phase, verdict: str, rank: Rank | None) -> tuple[FollowUp, ...]:
    """The questions that split what is still possible best, first; none whose answer stands in the paste or was given.

    Where the phase stays open the first of them is named all the same: it says what is missing, also to who does not know.
    """
    askable = [rule for rule in book.questions if holds(scene, all_=rule.all, any_=rule.any, none=rule.none)]
    launcher = scene.evidence.deployment.launcher
    wanted = dict.fromkeys(_worth_asking(scene, phase, verdict, rank))
    # of several wordings the first that suits the evidence
    suited = [rule for one in wanted if (rule := next((rule for rule in askable if rule.id == one), None)) is not None]
    asked = [rule for rule in suited if rule.id not in scene.evidence.answers] or (suited[:1] if phase == "unknown" else [])
    return tuple(_follow_up(rule, launcher.value if launcher else "shell") for rule in asked[:MOST])


def _follow_up(rule: QuestionRule, launcher: str) -> FollowUp:
    return FollowUp(rule.id, rule.text, rule.how.get(launcher) or rule.how["shell"], rule.would_change, tuple(rule.choices))


def _worth_asking(scene: Scene, phase: Phase, verdict: str, rank: Rank | None) -> Iterator[str]:
    evidence = scene.evidence
    if phase == "unknown":
        if scene.error is None or "without-figures" in getattr(scene.error_fact, "kinds", ()):
            yield "first_error"
        else:
            yield "memory_report"
        if not evidence.deployment.arguments:
            yield "engine_config"
        yield "memory_report"
        return
    known = scene.named("host-proof", "says-oomkilled", "connector-pool-full")
    if phase == "host_memory" and verdict != "certain" and not known:
        yield "first_error"  # the kernel's log, or the container's last state, tells who killed it
    if phase == "not_oom" and scene.has("stop-asked") and scene.has("host-kill") and not scene.has("host-proof"):
        yield "first_error"  # a command that kills may have been of another process
    if phase in ("not_oom", "host_memory"):
        return
    if scene.error is None and (verdict != "certain" or scene.unexplained(phase)):
        yield "first_error"
    grid = evidence.grid
    if evidence.engine == "llama.cpp":
        if phase == "weight_loading" and scene.error is not None and not scene.named("llama-cpp.device-free", "smi.free-row"):
            yield "gpu_inventory"
        return  # one process, whatever the number of cards
    if phase == "weight_loading" and layers_wanted(scene):
        yield "model_config"
    if phase in ("weight_loading", "kv_cache_sizing") and ranks_unsaid(scene):
        yield "engine_config"
    one_card = (grid.world or 2) < 2 or scene.named("metal.oom")
    if (rank is None or rank.number is None) and phase not in ("kv_cache_sizing",) and not one_card and scene.error is not None:
        yield "first_error" if _told_alone(scene) else "failing_rank"
    if evidence.engine == "unknown" and not scene.named("foreign.marker"):
        yield "engine_version"


def _told_alone(scene: Scene) -> bool:
    """Is the error known from somebody's words alone? Its own lines say more than the name of a rank would."""
    evidence = scene.evidence
    return scene.error_fact is not None and in_words(scene.error_fact) and not evidence.frames and not evidence.errors
