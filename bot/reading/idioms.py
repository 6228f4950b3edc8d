"""Sentences that say what failed by what they are about: a cache that holds nothing, a machine's RAM, a share that is not free."""

import re
from collections.abc import Mapping

from bot.reading.amounts import DEMANDS, falls_short, suffices
from bot.reading.sentences import CLAUSE, SIDE_BY_SIDE, WEIGHT, Sentence, apart
from bot.reading.together import COMPLAINTS
from bot.reading.words import Mention
from bot.rulebook.files import Moment

SURE = 4
TELLING = ("standstill", "ran", "initially", "eager", "cache", "pool", "host", "shm", "growth", "grows", "free", "trace", "there", "killed")
"""Words one of which stands in every sentence that is read so, but where a moment complains by itself."""
Named = tuple[str, int, int]
"""A moment's id, where the sentence says so, and how surely."""
_NEARBY = 44
_BESIDE = 30
_FIGURE = re.compile(r"\d")
_NEGATIVE = re.compile(r"(?<![\w.])[-−]\d+(?:\.\d+)?\ ?[gm]i?b")
_NOUGHT = re.compile(r"(?<![\w.])(?:-\d|−\d|0(?:\.0+)?\ ?(?:g|m|b))")
_PLENTY = re.compile(
    r"(?<![\w.])[1-9]\d{1,2}(?:\.\d+)?\ ?g(?:i?b)?\ (?:is\ |are\ |was\ |were\ |still\ )*(?:free|frei)|(?:half|mostly)\ empty"
)
_LENGTH = re.compile(r"(?<![\w.])\d{1,4}k(?![a-z\d])")
_OF_CACHE = re.compile(r"(?:insufficient|not enough|no|lack|short)\b.*\b(?:kv|cache|blocks?)\b")
_OF_RAM = re.compile(r"(?!.*gpu)(?:low|insufficient|not enough|short)\b.*(?:\bram|system memory|host memory)$")
_OF_CARD = re.compile(
    r"\ ?(?:memory|memoria|mémoire|memória|speicher|памяти)?(?:\ (?:of|on|in|the|de|da|du|della|la|le|el|en|sur|der|auf|на))*"
    r"\ ?(?:gpu|vram|cuda|v[ií]d[eé]o)"
)
"""Behind a shortage: it was the card's."""
_CARDS = re.compile(r"vram|gpu|显存|видеопамят|grafikspeicher")
"""In it: the same."""
_REMAINS = re.compile(r"memory (?:remain(?:s|ing)|left)$")
_FOR = re.compile(r"(?:for|für|para|pour|per|для)\ (?:the\ |den\ |la\ |el\ |le\ )?$")
_SCARCE = re.compile(
    r"not enough|insufficient|nicht genug|zu wenig|no hay|falta|insuficiente|manque|не хватает|недостаточно|не оста|памяти не"
)
"""For the cache there is too little: it is not made, it is too small."""
_HOLDS = re.compile(r"hold|store|fit|even")
_ASKED = re.compile(r"[^.!?;,，。；\n]{0,80}[?？]")
_STARTS = re.compile(
    r"(?:\ ?=\ ?true)?,?\ (?:then\ |all\ |everything\ |the\ (?:server|model|engine|pod)\ |vllm\ |it\ )*(?:starts|boots|runs|loads|fits)"
    r"(?=\W|$)(?!\ (?:to|out|in|cap|the)\b)"
)
_WITHOUT = re.compile(r"without|false|otherwise|else|ohne|sonst|sans|sin |без|不加|否则")
"""Behind the word for eager mode: with it the engine comes up. Before what fails then: that it does without it."""
_NOTHING = re.compile(r"\ (?:me\ |us\ )?(?:nothing|not|neither|little|nada|nichts|rien)\b")
_FREE = re.compile(r"free memory|memory free|frei")
_START = re.compile(r"start|boot|come up|comes up|arranca|démarre|запуск|起不来|안 뜨|뜨지")
"""Of a shortage: what is free is too little. Of a failure: it does not start."""
_UP = ("prose.serving", "prose.launch", "prose.inference")
_CHANGED = re.compile(
    r"upgrad|updat|version|switch|chang|downgrad|\bset(?:ting)?\b|rais|increas|升级|更新|换成|改成|调|transformers|\bhf\b|hugging|ollama|llama\.cpp"
    r"|sglang|\btgi\b|lmdeploy|fastchat|\bv[01]\b|\bother|\banother|smaller|single|one (?:gpu|card)|two (?:gpu|card)|其他|单卡|双卡"
)
"""What somebody did in between is why it is not as it was, or it is another engine that did."""
_MACHINE = ("the node", "the host", "the box", "laptop")
_LESS = ("below", "is below", "smaller")
_MARKS = (":", '"', "'", "“", "「")
_ALLOCATES = " to allocate "
"""PyTorch's sentence says what is free where it fails, which is no check."""
_ENDS = ("", ".", "\n", '"', "'", "”", "」")


def says_by_itself(one: Sentence, moments: Mapping[str, Moment]) -> Named | None:
    """The first of these readings that the sentence allows."""
    if one.taken_back:
        return None
    alone = (m for m in one.told("moment") if moments[m.moment].alone and one.relations[m] != "off" and not _headline(one, m))
    if (moment := next(alone, None)) is not None:
        return moment.moment, moment.start, SURE
    if (traced := _traced(one, moments)) is not None:
        return traced.moment, traced.start, SURE
    found = (("prose.capture", _but_eager(one)), ("prose.sizing", _too_small(one) or _nothing_remains(one)))
    if (said := next(((name, word) for name, word in found if word is not None), None)) is not None:
        return said[0], said[1].start, SURE
    if (complaint := _of_host(one) or _stands_still(one)) is not None:
        return complaint
    if (growth := _growing(one, moments)) is not None:
        return "prose.host" if one.has("host") else "prose.growth", growth.start, SURE - 1
    if (free := _not_free(one, moments)) is not None:
        return "prose.startup-check", free.start, SURE
    return None if (short := ran_out_later(one)) is None else ("prose.serving", short.start, SURE - 1)


def ran_out_later(one: Sentence, was_up: bool = False) -> Mention | None:
    """It answered, or worked at first, and then memory ran out: while it served, where nothing was changed and no other moment is named.
    `was_up`: the sentence before says that it did.
    """
    turns = one.all_of("but", "turned", "now", "later", "slowly", "thereafter")
    ran = [*one.all_of("ran"), *(early for early, fine in one.pairs("initially", "fine", CLAUSE) if not one.between(early, fine))]
    for short in one.told("shortage"):
        turn = next((word for word in turns if word < short), None)
        begun = next((word for word in ran if turn is not None and word < turn), None)
        if turn is None or (begun is None and not was_up):
            continue
        start = one.start if begun is None else begun.start
        complained = any(start <= word.start < turn.start for word in one.all_of(*COMPLAINTS))
        title = any(word.start < start for word in one.all_of(*COMPLAINTS))  # it says when, and then tells how it came
        named = any(relation in WEIGHT and (m.moment not in _UP if m.start > start else title) for m, relation in one.relations.items())
        if not complained and not named and _CHANGED.search(one.text, one.start, short.start) is None:
            return short
    return None


def _headline(one: Sentence, word: Mention) -> bool:
    """Is it all that the line says, or all that it asks?"""
    if _ASKED.match(one.text, word.end):
        return True
    return not one.text[one.start : word.start].strip() and one.text[word.end : word.end + 1] in ("", "\n")


def _traced(one: Sentence, moments: Mapping[str, Moment]) -> Mention | None:
    """The outermost function that somebody names of a traceback."""
    for trace in one.all_of("trace"):
        behind = (m for m, relation in one.relations.items() if m.telling and relation in WEIGHT and 0 <= m.start - trace.end <= CLAUSE)
        return next((moment for moment in behind if not moments[moment.moment].aside), None)
    return None


def _but_eager(one: Sentence) -> Mention | None:
    """It works without graphs, or does not with them."""
    for eager, cure in one.pairs("eager", "cures", CLAUSE):
        cured = one.joined(eager, cure) and _NOTHING.match(one.text, cure.end) is None
        if cured and not any(w.means in ("not", "but", *COMPLAINTS) for w in one.between(eager, cure)):
            return eager
    for eager in one.all_of("eager"):
        if starts := _STARTS.match(one.text, eager.end):
            fails = next((word.start for word in one.all_of(*COMPLAINTS) if word.start >= starts.end()), None)
            if fails is None or _WITHOUT.search(one.text, starts.end(), fails):
                return eager
    for eager, word in (*one.pairs("eager", "fine", _NEARBY), *one.pairs("not", "eager", SIDE_BY_SIDE)):
        between = one.between(eager, word)
        if eager.means == "eager" and not any(w.means in ("not", "but", *COMPLAINTS) for w in between):
            return eager
        if eager.means == "not" and eager < word and not between and one.told("shortage", "lack", "failure"):
            return word  # without it, it does not
    return None


def _too_small(one: Sentence) -> Mention | None:
    """The cache cannot hold one request, or there is none."""
    if not one.has("cache", "pool", "request-length", "shortage") or one.asks or one.names("prose.pressure"):
        return None
    if suffices(one) or _fits(one):
        return None
    own = [word for word in one.told("shortage") if _OF_CACHE.match(one.text, word.start, word.end)]
    if not one.has("cache", "pool", "request-length"):
        return next(iter(own), None)
    long = one.has("request-length") or _LENGTH.search(one.text, one.start, one.words[-1].end + SIDE_BY_SIDE) is not None
    if not _of_a_moment(one) and (less := falls_short(one, "request-length")) is not None:
        return less
    needs = [
        (cache, need)
        for cache, need in one.pairs("cache", "need", _NEARBY)
        if _beside(one.text, need, _FIGURE) and not any(word.means == "while" for word in one.between(cache, need))
    ]
    none = [word for word in one.all_of("not", "shortage") if word.means == "not" or one.text.startswith(("no ", "kein "), word.start)]
    needs += [
        (cache, left)
        for cache, left in one.pairs("cache", "left", _NEARBY)
        if _beside(one.text, left, _NOUGHT) or any(apart(left, word) <= _BESIDE for word in none)
    ]
    held = one.pairs("cache", "shortage", _NEARBY) if long else []  # a cache does not fit one request
    short = [
        (cache, word)
        for cache, word in one.pairs("cache", "shortage", 24)
        if " for " in one.text[word.end : cache.start]
        or (_FOR.search(one.text, one.start, cache.start) and _SCARCE.match(one.text, word.start))
    ]
    for cache, lack in (*one.pairs("cache", "lack", _NEARBY), *needs, *held, *short):
        if not any(word.means in ("moment", "but", "failure", "before") for word in one.between(cache, lack)):
            return lack
    holds = [word for word, _ in one.pairs("lack", "request-length", SIDE_BY_SIDE) if _HOLDS.search(one.text, word.start, word.end)]
    only = [*one.all_of("only"), *none]
    few = [left for left, _ in one.pairs("left", "pool", _NEARBY) if any(abs(left.start - word.end) <= _NEARBY for word in only)]
    negative = [cache for cache in one.all_of("cache") if _beside(one.text, cache, _NEGATIVE)]
    lacks = one.all_of("lack", "longer") if one.has("request-length") and one.has("cache", "pool") else []
    return next(iter([*negative, *lacks, *own, *holds, *few]), None)


def _fits(one: Sentence) -> bool:
    """Is a request said to be `below` what the cache holds?"""
    less = [word for word in one.all_of("lack", "longer") if one.text.startswith(_LESS, word.start)]
    return any(0 <= word.start - long.end <= SIDE_BY_SIDE for word in less for long in one.all_of("request-length"))


def _nothing_remains(one: Sentence) -> Mention | None:
    """What weights and neighbours leave for the cache is too little to make one; where memory ran out, it was being allocated."""
    if not (one.has("cache") or one.names("prose.allocation")) or one.asks:
        return None
    short = one.told("shortage")
    if short:
        return short[0] if all(_REMAINS.search(one.text, word.start, word.end) for word in short) else None
    return next((rest for means in ("lack", "need") for rest, _ in one.pairs("remainder", means, _BESIDE)), None)


def _of_a_moment(one: Sentence) -> bool:
    """Is it a moment that asks for so much, with an OOM (`the warm-up needs 20 GiB on top of the cache, OOM`)?"""
    demand = next(iter(one.all_of(*DEMANDS)), None)
    if demand is None or not one.told("shortage"):
        return False
    before = [word for word in one.words if word < demand and (word.telling or word.means in ("cache", "pool", "request-length"))]
    return bool(before) and before[-1].telling and one.joined(before[-1], demand)


def _of_host(one: Sentence) -> Named | None:
    """The complaint about the machine's own memory, where the sentence does not leave open whose it was."""
    if one.has("killed") and (killed := _printed(one)) is not None:
        return "prose.host", killed.start, SURE
    hosts = one.all_of("host", "shm")
    hosts += [short for short in one.told("shortage") if _OF_RAM.match(one.text, short.start, short.end)]
    if not hosts:
        return None
    devices = one.all_of("device")
    refused = [failure for failure, _ in one.pairs("failure", "make", 1)]  # it cannot allocate
    complaints = [*one.all_of("shortage", "killed", "lack"), *refused]
    pairs = ((host, device) for host in hosts for device in devices if apart(host, device) <= SIDE_BY_SIDE)
    if any(not {*complaints}.intersection(one.between(host, device)) for host, device in pairs):
        return None
    for complaint in complaints:
        host = min(hosts, key=lambda host: apart(host, complaint))
        of_card = _OF_CARD.match(one.text, complaint.end) or _CARDS.search(one.text, complaint.start, complaint.end)
        if complaint.means == "shortage" and of_card:
            continue
        if any(word.means == "but" for word in one.between(host, complaint)):
            continue  # what was tried of it did not help: it is not what ran out
        if complaint.means == "shortage" and one.text.startswith(_MACHINE, host.start) and not one.joined(host, complaint):
            continue  # another thing that is said of the machine
        cards = (apart(card, complaint) for card in devices if one.joined(card, complaint))
        if apart(host, complaint) <= min(cards, default=CLAUSE) and apart(host, complaint) <= CLAUSE:
            return "prose.shared-memory" if host.means == "shm" else "prose.host", complaint.start, SURE
    return None


def _stands_still(one: Sentence) -> Named | None:
    """The machine itself no longer answers while a model is loaded: what is read from a disk has filled its memory."""
    loads = [m for m, relation in one.relations.items() if m.moment == "prose.load" and relation in WEIGHT]
    stills = one.all_of("standstill")
    return ("prose.host", stills[0].start, SURE - 1) if stills and any(apart(stills[0], load) <= CLAUSE for load in loads) else None


def _printed(one: Sentence) -> Mention | None:
    """A `Killed` that stands alone, as a shell prints it."""
    alone = (w for w in one.all_of("killed") if one.text[w.start : w.end] == "killed" and one.text[w.start - 2 : w.start].strip() in _MARKS)
    return next((word for word in alone if one.text[word.end : word.end + 1] in _ENDS), None)


def _growing(one: Sentence, moments: Mapping[str, Moment]) -> Mention | None:
    """Memory became more and more, and no other moment than requests is named."""
    if not one.has("growth", "grows"):
        return None
    memory = one.all_of("memory", "device", "host")
    slowly = [w for w in one.all_of("grows") if one.has("slowly") and any(0 <= w.start - m.end <= 30 for m in memory)]
    growth = next(iter(one.all_of("growth") or slowly), None)
    if growth is None or not memory or one.text[growth.end : growth.end + 2].strip().startswith("?"):
        return None
    started = {m for m, relation in one.relations.items() if m.moment == "prose.launch" and relation == "bare"}  # `we deploy X, and …`
    other = [(m, relation) for m, relation in one.relations.items() if not moments[m.moment].again and m not in started]
    return None if any(relation == "while" or (m.telling and relation in WEIGHT) for m, relation in other) else growth


def _not_free(one: Sentence, moments: Mapping[str, Moment]) -> Mention | None:
    """Less was free at the start than the fraction asks for."""
    short = next((word for word in one.told("shortage") if _FREE.search(one.text, word.start, word.end)), None)
    if short is not None and (one.names("prose.launch") or any(_START.search(one.text, w.start, w.end) for w in one.all_of("failure"))):
        return short
    if not one.has("free") or suffices(one) or _ALLOCATES in one.text[one.start : one.all_of("free")[0].end]:
        return None
    first = ("prose.launch", "prose.load", "prose.workers-meet")
    going = [m for m, relation in one.relations.items() if m.telling and relation in WEIGHT and not moments[m.moment].aside]
    starting = one.has("fraction") or one.names(*first) or (not one.relations and not one.has("shortage") and falls_short(one))
    complains = one.has(*COMPLAINTS, *DEMANDS) or any(one.pairs("not", "free", SIDE_BY_SIDE))
    complains = complains and all(one.text.startswith("container", host.start) for host in one.all_of("host"))
    begun = any(m.moment not in first or one.text.startswith("mid", m.start) for m in going)
    begun = begun or (one.has("shortage") and any(m.moment == "prose.load" and one.relations[m] == "while" for m in going))
    return one.all_of("free")[0] if starting and complains and not begun else None


def _beside(text: str, word: Mention, figure: "re.Pattern[str]") -> bool:
    """Does such a figure stand beside it?"""
    return figure.search(text, max(0, word.start - _BESIDE), word.end + _BESIDE) is not None


def plenty(one: Sentence) -> Mention | None:
    """Ten gigabytes and more are free, and nothing is asked for: not why anything failed."""
    if one.has("only", "fraction", "demand", "need", "shortage", "lack") or one.asks:
        return None
    return next((free for free in one.all_of("free") if _beside(one.text, free, _PLENTY)), None)
