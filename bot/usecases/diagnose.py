"""A paste, a file or an answer becomes a diagnosis, kept with everything that was said before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.domain.incident import Contribution, Incident, Origin
from bot.store.errors import ErasedMeanwhileError, StoreError
from bot.usecases.desk import Desk
from bot.usecases.judge import QUESTION, REFUTED
from bot.usecases.next_step import to_talk
from bot.usecases.reply import Reply, Unusable

TALK = 2_000
"""Characters from which on words are no talk, where a person at the page or in a terminal gave them to be read."""


class NoEvidence(Unusable):
    """What was said is talk: nothing in it tells of an engine, a card or a failure. `document`: what was judged of it, kept nowhere."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        super().__init__(to_talk(document))
        self.document = document


async def diagnose(
    desk: Desk,
    origin: Origin,
    contributions: Sequence[Contribution],
    *,
    into: str | None = None,
    keep: bool = True,
    talk: bool = True,
    asked: bool = False,
) -> Reply:
    """The diagnosis of these contributions, with all earlier ones of the incident `into`; kept unless `keep` is off.

    When it cannot be kept, the diagnosis is given all the same and the Reply's warning says why. Unusable: no such incident, nothing said.
    `talk` off: words in which there is no evidence open no incident, NoEvidence instead. A file always is what somebody wanted read.
    `asked`: they are a question, so that an engine or a card that they name is no evidence yet.
    """
    if not contributions:
        raise Unusable("There is nothing to diagnose. Paste the log, or attach it as a file.")
    earlier = await _earlier(desk, origin, into)
    said = [*(earlier.contributions if earlier else ()), *(replace(c, at=c.at or desk.now()) for c in contributions)]
    document = dict(await desk.judge(said, ()))
    if not talk and earlier is None and not shows_something(document, asked) and all(c.kind == "paste" for c in contributions):
        raise NoEvidence(document)
    if not keep or desk.store is None:
        return Reply("diagnosis", document)
    try:
        precedents = await desk.store.precedents(origin, document, leave_out=into)
        if any(p.get("outcome") == REFUTED for p in precedents):  # only what failed changes what is offered: else all is read already
            document = dict(await desk.judge(said, precedents))
        document["similar"] = await desk.store.similar(origin, document, leave_out=into)
        incident = await desk.store.append(origin, contributions, document, into=into, heard=earlier.contributions if earlier else ())
    except ErasedMeanwhileError:
        return await diagnose(desk, origin, contributions, into=into, talk=talk, asked=asked)
    except StoreError as error:
        return Reply("diagnosis", document, warning=f"The diagnosis was not kept: {error}")
    return Reply("diagnosis", {**document, "id": incident})


def shows_something(document: Mapping[str, Any], asked: bool = False) -> bool:
    """Whether a diagnosis found anything to go by: an error, a figure, and, unless it was only `asked`, what was started."""
    if document["first_error"] or document["budgets"]:
        return True
    if document["phase"] != "unknown":
        return any(one["rule"] != QUESTION for one in document["proof"])
    if asked:
        return False
    told = [value for name, value in document["deployment"].items() if value and (name != "host" or any(value.values()))]
    return bool(document["proof"] or document["engine"] != "unknown" or told)


async def _earlier(desk: Desk, origin: Origin, into: str | None) -> Incident | None:
    if into is None or desk.store is None:
        return None
    incident = await desk.store.load(origin.team, into)
    if incident is None:
        raise Unusable(f"There is no incident {into}. `oombot history` lists those there are.")
    return incident
