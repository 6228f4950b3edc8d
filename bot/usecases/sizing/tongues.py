"""A question in the words of any language that we know -> the same in the words that are read here; what is not known stays as it is."""

import re
from functools import cache

from bot.rulebook.gpus import Gpus, Mention
from bot.rulebook.sizing_words import load_sizing_words

OTHER_SCRIPT = re.compile(r"[\u3000-\u303f\u3040-\u9fff\uac00-\ud7af\uff00-\uffef]+")
"""What is written in Chinese, Japanese or Korean, where no space parts the words."""
_WORD = re.compile(r"(?<![\w./-])[^\W\d_][^\W\d_']*|(?<=\d)[^\W\d_]+")
"""A word alone, or glued to a figure before it: 64тыс."""
_GLUED = re.compile(r"[\w/]|-\w")
_LONGEST = 3
"""Words that stand for one thing together, at most."""
_FIGURE = r"[2-7]0[5-9]0"
"""A card that is called by a figure alone, which is a card's only where their number stands before it: 2x 4090."""
_OF_ELSE = r"(?! (?:of )?(?:pool|kv|weights|checkpoint|other|cpu|offload|ram))"
_BOXES = re.compile(r"(?i)(?<![\w-])(?:(\d{1,2}) (?:x )?)?(?:DGX|HGX)s?[ -](?=(?:A100|A800|H100|H800|H200|H20|B200|B300)\b)")
"""Machines with eight cards, by their makers' names."""


def in_english(text: str, gpus: Gpus) -> str:
    """The same question with its words, figures and counts of cards in one form: `两张4090` as `2x 4090`, `A100 de 80GB` as `A100-80GB`."""
    text = _counted_in_signs(_figures(_translated(" ".join(text.split()))))
    text = " ".join(OTHER_SCRIPT.sub(lambda match: f" {match[0]} ", text).split())
    text = _BOXES.sub(lambda match: f"{match[1]} nodes of 8x " if match[1] else "8x ", _numbers_in_words(text))
    return _sized(_counted(text, gpus), gpus)


@cache
def _signs() -> re.Pattern[str]:
    """What stands for something in English and is written in signs; the longest first."""
    said = sorted(filter(OTHER_SCRIPT.search, load_sizing_words().stands_for), key=len, reverse=True)
    return re.compile("|".join(re.escape(word).replace(r"\ ", " ?") for word in said))


def _translated(text: str) -> str:
    """Runs of words are looked up, the longest first: one pattern of all of them would take longer to compile than to ask."""
    table = load_sizing_words().stands_for
    if OTHER_SCRIPT.search(text):
        text = _signs().sub(lambda match: f" {table.get(match[0]) or table[match[0].replace(' ', '')]} ", text)
    words, made, done = list(_WORD.finditer(text)), "", 0
    for first, word in enumerate(words):
        if word.start() < done:
            continue
        runs = (text[word.start() : last.end()] for last in reversed(words[first : first + _LONGEST]))
        found = next((run for run in runs if run.lower() in table and not _GLUED.match(text, word.start() + len(run))), None)
        if found is not None:
            made += text[done : word.start()] + table[found.lower()]
            done = word.start() + len(found)
    return made + text[done:]


def _figures(text: str) -> str:
    """`a100x4`, `128 k`, `32к`, `100 000`, `3万` and `0,9` as `a100 x4`, `128k`, `32k`, `100000`, `30000` and `0.9`."""
    text = re.sub(r"(?<![\w.-])([A-Za-z]{1,4}\d{2,4})[x×*](\d{1,2})(?![\w])", r"\1 x\2", text)
    text = re.sub(rf"(?<![\w.-])({_FIGURE})[x×*](\d{{1,2}})(?![\w])", r"\2x \1", text)
    text = re.sub(r"(?<=\d) ?[кК](?![\w])", "k", text)
    text = re.sub(r"(?<![\w.,-])(\d{1,4}) k(?![\w])", r"\1k", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![\w.,-])(\d{1,3})((?: 000)+)(?![\d])", lambda match: match[1] + match[2].replace(" ", ""), text)
    text = re.sub(r"(\d+(?:\.\d+)?) ?[万萬만]", lambda match: str(int(float(match[1]) * 10_000)), text)
    return re.sub(r"(?<![\w.,])0,(?=\d{1,3}(?!\d))", "0.", text)


def _counted_in_signs(text: str) -> str:
    """`8张`, `两卡` as ` 8x `, and `2台` as ` 2 nodes `."""
    words = load_sizing_words()
    numbers = {word: number for word, number in words.numbers.items() if OTHER_SCRIPT.search(word)}
    number = rf"\d{{1,3}}|{'|'.join(map(re.escape, sorted(numbers, key=len, reverse=True)))}"
    text = re.sub(rf"({number}) ?[{words.counters}]", lambda match: f" {numbers.get(match[1]) or match[1]}x ", text)
    return re.sub(rf"({number}) ?[{words.machines}]", lambda match: f" {numbers.get(match[1]) or match[1]} nodes ", text)


_BEFORE = re.compile(r"(?<![\w.-])(?P<said>[^\s-]+?(?: of)?)(?P<counts>[ -]?(?:gpus?|cards?)(?: (?:of|de|d'|von|da))?)? $", re.IGNORECASE)
"""A number right before a card: in words, or in figures where it says what it counts (`8 cards of`, `8-gpu`)."""


def _number_before(text: str) -> tuple[int, int] | None:
    """(where it begins, the number)."""
    before = _BEFORE.search(text)
    if before is None:
        return None
    said = before["said"].lower()
    count = load_sizing_words().numbers.get(said) or (int(said) if before["counts"] and said.isdecimal() and len(said) < 4 else None)
    return None if count is None else (before.start(), count)


def _numbers_in_words(text: str) -> str:
    """`two DGX`, `двух 3090` as `2 DGX`, `2x 3090`."""
    numbers = load_sizing_words().numbers

    def in_figures(match: re.Match[str]) -> str:
        number = numbers.get(match[1].lower())
        return match[0] if number is None else f"{number}{'x' if match['card'] else ''} "

    boxes = r"(?:DGX|HGX|nodes?|servers?|machines?|hosts?|boxes)\b"
    return re.sub(rf"(?i)(?<![\w.-])(\w+) (?=(?P<card>{_FIGURE}(?!\w))|{boxes})", in_figures, text)


def _counted(text: str, gpus: Gpus) -> str:
    """`auf einer H100`, `8-gpu H200`, `H200 8x` as `auf 1x H100`, `8x H200`, `H200 x8`."""
    text = _counted_behind(text, gpus)
    mentions, numbers = gpus.mentions(text), load_sizing_words().numbers
    for number, mention in reversed(list(enumerate(mentions))):
        if mention.count is not None:
            continue
        behind = re.match(r" (\d{1,3})x(?= |$)", text[mention.end :])
        next_card = mentions[number + 1].start if number + 1 < len(mentions) else -1
        article, _, name = mention.text.partition(" ")
        if behind and next_card not in range(mention.end, mention.end + behind.end() + 2):
            text = f"{text[: mention.end]} x{behind[1]}{text[mention.end + behind.end() :]}"
        elif article.lower() in numbers:
            text = f"{text[: mention.start]}{numbers[article.lower()]}x {name}{text[mention.end :]}"
        elif before := _number_before(text[: mention.start]):
            text = f"{text[: before[0]]}{before[1]}x {text[mention.start :]}"
    return text


_BEHIND = re.compile(rf"(?<![\w.-])({_FIGURE}) (\d{{1,3}})x(?= [^\x00-\x7f]|$)")


def _counted_behind(text: str, gpus: Gpus) -> str:
    """`4090 2x で` as `2x 4090 で`: the figure alone was none of a card's yet."""
    named = [range(mention.start, mention.end) for mention in gpus.mentions(text)]
    return _BEHIND.sub(lambda match: match[0] if any(match.start() in one for one in named) else f"{match[2]}x {match[1]}", text)


def _sized(text: str, gpus: Gpus) -> str:
    """`2 A100 de 80GB`, `A100x4 80gb` and `H100 à 80 GB` as the card of that size."""
    joins = "|".join(map(re.escape, sorted(load_sizing_words().joins, key=len, reverse=True)))
    size = re.compile(rf" ?\(?(?P<join>(?:{joins}) )?(?P<size>\d{{2,3}}) ?(?:GB|GiB|G)\b\)?{_OF_ELSE}", re.IGNORECASE)
    for mention in reversed(gpus.mentions(text)):
        said = size.match(text, mention.end)
        if said and (one := _of_size(mention, int(said["size"]))) is not None:
            count = f"{mention.count}x " if mention.count is not None else ""
            text = f"{text[: mention.start]}{count}{one}{text[said.end() :]}"
    return text


def _of_size(mention: Mention, size: int) -> str | None:
    fitting = [spec.id for spec in mention.specs if spec.nominal_gb == size]
    return fitting[0] if len(fitting) == 1 else None
