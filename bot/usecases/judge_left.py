"""What is left of an incident of which a part was erased is judged anew: the rest was given, and still stands where it was said."""

from bot.store.errors import ErasedMeanwhileError
from bot.usecases.desk import Desk, kept
from bot.usecases.diagnose import shows_something
from bot.usecases.erased import has_evidence, lost_its_sentences


async def judge_left(desk: Desk, team: str, incident_id: str) -> None:
    """Nothing where nothing was erased since it was judged, or where what is left shows nothing: then what the incident was stays said."""
    store = kept(desk)
    incident = await store.load(team, incident_id)
    if incident is None or not lost_its_sentences(incident.document) or not has_evidence(incident.contributions):
        return
    precedents = await store.precedents(incident.origin, incident.document, leave_out=incident.id)
    document = dict(await desk.judge(incident.contributions, precedents))
    if not shows_something(document):
        return
    document["similar"] = await store.similar(incident.origin, document, leave_out=incident.id)
    try:
        await store.append(incident.origin, (), document, into=incident.id, heard=incident.contributions)
    except ErasedMeanwhileError:
        await judge_left(desk, team, incident_id)
