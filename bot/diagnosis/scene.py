"""What the rules may look at: the evidence, who failed, and facts that follow from figures."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.domain.deployment import Setting
from bot.domain.diagnosis import FirstError, Phase, Proof
from bot.domain.evidence import Evidence, Fact, Frame, Speaker
from bot.rulebook.book import texts
from bot.rulebook.files import Condition

LONGEST_SHOWN = 2000
Weigh = Callable[[Evidence, int], tuple[int, int] | None]
"""(evidence, tensor-parallel ranks) -> bytes of weights on the fullest rank and of its card; None where model or card is not known."""


class _Traced:
    """Some frames: hundreds of conditions ask for those of a function, or whose shown source line calls it."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self.frames = frames
        self._of: dict[str, list[int]] = {}
        self._calling: dict[str, list[int]] = {}
        for place, frame in enumerate(frames):
            self._of.setdefault(frame.function.strip("_"), []).append(place)
            for call in _CALL.findall(frame.echo):
                self._calling.setdefault(call, []).append(place)

    def named(self, functions: Sequence[str], *, calls: bool) -> Iterator[Frame]:
        """The frames of these functions (`*`: of any); with `calls` also those that call one, running where it is cut."""
        bare = {name.strip("_") for name in functions}  # a chat may have eaten the underscores at both ends (`__init__` as `init`)
        if "*" in bare:
            yield from self.frames
            return
        places = {place for name in bare for place in self._of.get(name, ())}
        places |= {place for name in functions if calls for place in self._calling.get(name, ())}
        yield from (self.frames[place] for place in sorted(places))


_CALL = re.compile(r"\.(\w+)\(")


@dataclass(frozen=True, slots=True)
class Scene:
    """`facts` holds the evidence's facts and those derived from figures; `failing` the process that failed first.

    `defaults`: what was in force where nobody said anything, by argument. `weigh`: what sizing says of the weights, where
    it is asked.
    """

    evidence: Evidence
    facts: Sequence[Fact]
    failing: Speaker | None
    error: FirstError | None
    error_fact: Fact | None = None
    defaults: Mapping[str, Setting] = field(default_factory=dict)
    weigh: Weigh | None = None
    _named: Mapping[str, Sequence[Fact]] = field(init=False, repr=False, compare=False)
    _traced: dict[str, "_Traced"] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Hundreds of conditions ask for a few facts each: they find them by id (which has a dot) or by kind (which has none)."""
        named: dict[str, list[Fact]] = {}
        for fact in self.facts:
            for name in (fact.id, *fact.kinds):
                named.setdefault(name, []).append(fact)
        object.__setattr__(self, "_named", named)

    def named(self, *names: str) -> Sequence[Fact]:
        """The facts with one of these ids or kinds, in the order of the text."""
        found = [self._named[name] for name in names if name in self._named]
        if len(found) < 2:
            return found[0] if found else ()
        either = {id(fact) for facts in found for fact in facts}
        return [fact for fact in self.facts if id(fact) in either]

    def traced(self, of: str) -> "_Traced":
        """The failing speaker's frames; where it has none, those of other workers or unsigned lines; or the engine core's."""
        if of not in self._traced:
            self._traced[of] = _Traced(self._frames_of(of))
        return self._traced[of]

    def _frames_of(self, of: str) -> Sequence[Frame]:
        frames = self.evidence.frames
        if of == "anyone":
            return frames
        if of == "engine-core":
            return [f for f in frames if f.speaker.role in ("engine-core", "unknown", "front-end") or f.speaker.label.startswith("rank ")]
        own = [f for f in frames if self.failing is not None and f.speaker.key == self.failing.key]
        return own or [f for f in frames if f.speaker.role in ("worker", "unknown")]

    def own_frames(self) -> bool:
        """Does the failing speaker show a traceback of its own?"""
        return self.failing is not None and any(f.speaker.key == self.failing.key for f in self.evidence.frames)

    def has(self, kind: str) -> bool:
        """Is there a fact of that kind?"""
        return kind in self._named

    @property
    def container(self) -> str | None:
        """The container that failed, where lines of several stand in the paste."""
        groups = {line.speaker.group for line in self.evidence.speakers if line.speaker.group}
        return self.failing.group or None if self.failing is not None and len(groups) > 1 else None

    def unexplained(self, phase: Phase) -> bool:
        """Is only known where it stopped, by a frame or a mark, and nothing says that memory was short?"""
        said = ("says-oom", "says-sizing", "pool-not-positive", "says-host", "says-killed", "host-kill")
        return phase not in ("unknown", "not_oom", "host_memory") and self.error is None and not any(self.has(kind) for kind in said)

    def share(self, ranks: int) -> tuple[int, int] | None:
        """(weights of the fullest of so many ranks, its card) as sizing says, in bytes; None where it cannot say."""
        return None if self.weigh is None else self.weigh(self.evidence, ranks)

    def first(self, *names: str) -> Fact | None:
        """The first fact with one of these ids or kinds."""
        return next(iter(self.named(*names)), None)


def witnesses(condition: Condition, scene: Scene, of: str = "anyone") -> Iterator[Fact | Frame]:
    """Everything in the scene that satisfies one condition."""
    functions, files = texts(condition.frame), texts(condition.file)
    if functions:
        for frame in scene.traced(of).named(functions, calls=not files):
            if not files or any(frame.stands_in(f) for f in files):
                yield frame
    if condition.echo:
        yield from (frame for frame in scene.traced(of).frames if condition.echo in frame.echo)
    for fact in scene.named(*texts(condition.fact), *texts(condition.kind)):
        if _fields_hold(condition.where, fact.fields):
            yield fact


def holds(
    scene: Scene, *, all_: Sequence[Condition] = (), any_: Sequence[Condition] = (), none: Sequence[Condition] = (), of: str = "anyone"
) -> bool:
    """Every one of `all_`, at least one of `any_` where there are some, and none of `none`."""
    return (
        all(_satisfied(c, scene, of) for c in all_)
        and (not any_ or any(_satisfied(c, scene, of) for c in any_))
        and not any(_satisfied(c, scene, of) for c in none)
    )


def _satisfied(condition: Condition, scene: Scene, of: str) -> bool:
    return next(witnesses(condition, scene, of), None) is not None


def _fields_hold(where: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    """field = value or list of values; field_has = texts it contains; field_min, field_max = bounds."""
    for name, wanted in where.items():
        if name.endswith("_has"):
            text = str(fields.get(name.removesuffix("_has"), ""))
            if not any(str(w) in text for w in (wanted if isinstance(wanted, list) else [wanted])):
                return False
        elif name.endswith(("_min", "_max")):
            value = fields.get(name[:-4])
            if value is None or (value < wanted if name.endswith("_min") else value > wanted):
                return False
        elif fields.get(name) not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def proof(witness: Fact | Frame, rule: str, lines: Mapping[tuple[int, int], str]) -> Proof:
    """The line behind a witness, as given."""
    return Proof(witness.source, witness.line, rule, as_given(witness, lines)[:600])


def as_given(witness: Fact | Frame, lines: Mapping[tuple[int, int], str]) -> str:
    """The line as it was pasted; of a line as long as a whole export, the message alone."""
    message = getattr(witness, "text", "")
    given = lines.get((witness.source, witness.line), message)
    return message if message and len(given) > LONGEST_SHOWN else given
