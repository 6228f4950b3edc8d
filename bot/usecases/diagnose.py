"""A paste, a file or an answer becomes a diagnosis, kept with everything that was said before."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.incident import Contribution, Incident, Origin
from bot.store.errors import StoreError
from bot.usecases.desk import Desk
from bot.usecases.judge import REFUTED
from bot.usecases.reply import Reply, Unusable


async def diagnose(
    desk: Desk, origin: Origin, contributions: Sequence[Contribution], *, into: str | None = None, keep: bool = True
) -> Reply:
    """The diagnosis of these contributions, with all earlier ones of the incident `into`; kept unless `keep` is off.

    When it cannot be kept, the diagnosis is given all the same and the Reply's warning says why. Unusable: no such incident, nothing said.
    """
    if not contributions:
        raise Unusable("There is nothing to diagnose. Paste the log, or attach it as a file.")
    earlier = await _earlier(desk, origin, into)
    said = [*(earlier.contributions if earlier else ()), *(replace(c, at=c.at or desk.now()) for c in contributions)]
    document = dict(await desk.judge(said, ()))
    if not keep or desk.store is None:
        return Reply("diagnosis", document)
    try:
        precedents = await desk.store.precedents(origin, document, leave_out=into)
        if any(p.get("outcome") == REFUTED for p in precedents):  # only what failed changes what is offered: else all is read already
            document = dict(await desk.judge(said, precedents))
        document["similar"] = await desk.store.similar(origin, document, leave_out=into)
        incident = await desk.store.append(origin, contributions, document, into=into)
    except StoreError as error:
        return Reply("diagnosis", document, warning=f"The diagnosis was not kept: {error}")
    return Reply("diagnosis", {**document, "id": incident})


async def _earlier(desk: Desk, origin: Origin, into: str | None) -> Incident | None:
    if into is None or desk.store is None:
        return None
    incident = await desk.store.load(origin.team, into)
    if incident is None:
        raise Unusable(f"There is no incident {into}. `oombot history` lists those there are.")
    return incident
