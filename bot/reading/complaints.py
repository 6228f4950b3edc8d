"""Which moment the complaint of a sentence belongs to: the one that was going on, said best and standing nearest to it."""

from collections.abc import Mapping
from dataclasses import dataclass

from bot.reading.idioms import SURE
from bot.reading.sentences import CLAUSE, SIDE_BY_SIDE, WEIGHT, Sentence, apart
from bot.reading.together import COMPLAINTS
from bot.reading.words import Mention
from bot.rulebook.files import Moment

RATHER = {"prose.serving": -1, "prose.launch": -3, "prose.startup-check": 1}
"""People say serving and starting of everything; what had not begun is said of nothing else."""


@dataclass(frozen=True, slots=True)
class Said:
    """A moment that somebody names, and where in the text. `weight`: how well; `fails`: more than an unnamed error is said of it."""

    moment: Moment
    at: int
    weight: int = SURE
    fails: bool = False


def complained_of(one: Sentence, moments: Mapping[str, Moment]) -> Said | None:
    """The moment that a complaint of the sentence belongs to."""
    complaints = one.told(*COMPLAINTS)
    if not complaints or (one.names("prose.other-fault", "prose.pressure") and not one.has("shortage")):
        return None
    rated: list[tuple[int, int, Said]] = []
    for moment in one.relations:
        nearest = min(complaints, key=lambda complaint: apart(complaint, moment))
        going_on, relation = meant(moment, one, moments)
        if relation in WEIGHT and _belongs(moment, relation, nearest, one, moments[moment.moment].lasting):
            weight = WEIGHT[relation] + 2 * (moment.telling or going_on != moment.moment) + RATHER.get(going_on, 0)
            said = Said(moments[going_on], moment.start, weight, nearest.means not in ("error", "killed"))
            rated.append((weight, -apart(nearest, moment), said))
    return max(rated, key=lambda rate: rate[:2])[2] if rated else None


def meant(moment: Mention, one: Sentence, moments: Mapping[str, Moment]) -> tuple[str, str]:
    """The id of the moment that was going on, and how it is said: of one that had not begun, the one before it; `off` where none is."""
    relation, rule = one.relations[moment], moments[moment.moment]
    if rule.aside or (relation == "before" and (not rule.begins_after or "past" in one.relations.values() or _begun(moment, one))):
        return "", "off"
    return (rule.begins_after, "while") if relation == "before" else (rule.id, relation)


def _belongs(moment: Mention, relation: str, complaint: Mention, one: Sentence, lasting: bool) -> bool:
    """Is the complaint about this moment? A weak word, or an error without a name, must be joined to it."""
    serving = moment.moment == "prose.serving"
    if serving and {word.means for word in one.all_of(*COMPLAINTS)} == {"error"}:
        return False
    if relation != "bare":
        return relation == "while" or moment.telling or not serving
    if complaint.means == "error" and not (moment.telling and apart(complaint, moment) <= SIDE_BY_SIDE):
        return False
    parted = not lasting and any(word.means == "but" for word in one.between(complaint, moment))
    return (moment.telling or not serving) and apart(complaint, moment) <= CLAUSE and not parted


def _begun(moment: Mention, one: Sentence) -> bool:
    """Does the sentence say of another word of this moment that it was going on (`puts the weights there before it quantizes them`)?"""
    return any(other.moment == moment.moment and relation in WEIGHT for other, relation in one.relations.items())
