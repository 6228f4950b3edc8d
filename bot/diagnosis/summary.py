"""The verdict in one sentence."""

import re

from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import Phase
from bot.domain.phases import phase_words
from bot.domain.rank import Rank, named
from bot.domain.size import gib

_SHORT = re.compile(r"out\ ?of\ ?(?:\w+\ ?)?memory|\boom\b")
_CONFIG = re.compile(r'"architectures"\s*:\s*\[')


def summary_of(scene: Scene, phase: Phase, verdict: str, rank: Rank | None, rule: str | None = None, says: str = "") -> str:
    """One sentence that says what failed, where, and how sure. `says`: what the rule that decided has to say of it."""
    if phase == "unknown":
        if scene.error:
            return "The evidence does not decide which phase failed."
        if scene.has("says-oom") or _speaks_of_shortage("\n".join(scene.evidence.lines.values())):
            return "Memory is said to have run out, but the error itself is not in this evidence, so no phase can be named."
        if any(_CONFIG.search(text) for text in scene.evidence.lines.values()):
            return "This is a model's config.json and no log: `oombot size --config FILE --gpu NAME` says whether the model will start."
        if any("card-process" in fact.kinds for fact in scene.facts) and not scene.evidence.frames:
            return "This shows who holds the cards and no failure, so no phase can be named."
        if scene.has("orphaned"):
            return "Processes outlived their server and hold their cards; the error of the start that met them is not in this evidence."
        where = "what was kept of this evidence" if scene.evidence.cut else "this evidence"
        return f"There is no memory error in {where}, so no phase can be named."
    if phase == "not_oom":
        return _NO_SHORTAGE.get(rule or "") or _no_shortage(verdict, says)
    if scene.has("profiling_assert") and phase == "profiling":
        return "Stopped in the profiling run by an assertion: free memory changed while it was measured. That is no shortage."
    who = named(rank.number, rank.label) if rank is not None else ""
    where = "".join((f" on {who}" if who else "", (f" of {box}" if who else f" in {box},") if (box := scene.container) else ""))
    during = phase_words(phase, scene.evidence.engine).inside
    sure = "" if verdict == "certain" else "Probably: "
    if scene.unexplained(phase):
        why = "the line that says why is cut off" if scene.has("error-cut-off") else "no line here says that memory ran out"
        return _opened(sure, f"Stopped{where} in {during}; {why}.")
    if says and phase == "host_memory":
        return _opened(sure, f"Stopped by {during}: {says}.")
    if says:
        return _opened(sure, f"Stopped{where} in {during}: {says}.")
    figures = scene.error.figures if scene.error is not None else {}
    tried, free = figures.get("tried_bytes"), figures.get("free_bytes")
    size = f"; it wanted {gib(tried)}" + (f" and {gib(free)} were free" if free is not None else "") if tried else ""
    checks = phase in ("kv_cache_sizing", "startup_check")
    lead = f"Stopped{where} in " if checks else "Out of " if phase == "host_memory" else f"Out of memory{where} in "
    return _opened(sure, f"{lead}{during}{size}.")


_NO_SHORTAGE = {
    "not-oom.question": "This asks how memory is used and shows no failure.",
    "not-oom.ready": "The server started; nothing failed in this log.",
    "not-oom.stopped": "The server was asked to stop; nothing failed before that in this log.",
}


def _speaks_of_shortage(text: str) -> bool:
    small = text.lower()
    return ("memory" in small or "oom" in small) and _SHORT.search(small) is not None


def _no_shortage(verdict: str, says: str) -> str:
    sure = "" if verdict == "certain" else "probably "
    return f"This is {sure}no out-of-memory failure{': ' + says if says else ''}."


def _opened(sure: str, sentence: str) -> str:
    return sure + (sentence[0].lower() + sentence[1:] if sure else sentence)
