"""A question in the words of any language that we know -> the same in the words that are read here; what is not known stays as it is."""

import re
from functools import cache

from bot.rulebook.gpus import Gpus, Mention
from bot.rulebook.sizing_words import load_sizing_words

_SIGNS = "\u3000-\u303f\u3040-\u9fff\uac00-\ud7af\uff00-\uffef"
"""What is written in Chinese, Japanese or Korean."""
_OTHER_SCRIPT = re.compile(rf"[{_SIGNS}]+")
_OF_ELSE = r"(?! (?:of )?(?:pool|kv|weights|checkpoint|other|cpu|offload|ram))"
_BOXES = re.compile(r"(?i)(?<![\w-])(?:(\d{1,2}) (?:x )?)?(?:DGX|HGX)s?[ -](?=(?:A100|A800|H100|H800|H200|H20|B200|B300)\b)")
"""Machines with eight cards, by their makers' names."""


def in_english(text: str, gpus: Gpus) -> str:
    """The same question with its words, figures and counts of cards in one form: `两张4090` as `2x 4090`, `A100 de 80GB` as `A100-80GB`."""
    text = _counted_in_signs(_figures(_translated(" ".join(text.split()))))
    text = " ".join(_OTHER_SCRIPT.sub(lambda match: f" {match[0]} ", text).split())
    text = _BOXES.sub(lambda match: f"{match[1]} nodes of 8x " if match[1] else "8x ", _numbers_of_boxes(text))
    return _sized(_counted(text, gpus), gpus)


@cache
def _words(signs: bool) -> re.Pattern[str]:
    """What stands for something in English; the longest first."""
    said = sorted((word for word in load_sizing_words().stands_for if bool(_OTHER_SCRIPT.search(word)) is signs), key=len, reverse=True)
    told = "|".join(re.escape(word).replace(r"\ ", " ?" if signs else " ") for word in said)
    return re.compile(told if signs else rf"(?i)(?<![\w./-])(?:{told})(?![\w/]|-\w)|(?<=\d)(?: ?(?:тыс|tys)\b\.?)")


def _translated(text: str) -> str:
    table = load_sizing_words().stands_for
    text = _words(True).sub(lambda match: f" {table.get(match[0]) or table[match[0].replace(' ', '')]} ", text)
    return _words(False).sub(lambda match: table.get(match[0].lower().strip(" ."), match[0]), text)


def _figures(text: str) -> str:
    """`a100x4`, `128 k`, `32к`, `100 000`, `3万` and `0,9` as `a100 x4`, `128k`, `32k`, `100000`, `30000` and `0.9`."""
    text = re.sub(r"(?<![\w.-])([A-Za-z]{1,4}\d{2,4})[x×*](\d{1,2})(?![\w])", r"\1 x\2", text)
    text = re.sub(r"(?<![\w.-])([2-7]0[5-9]0)[x×*](\d{1,2})(?![\w])", r"\2x \1", text)
    text = re.sub(r"(?<=\d) ?[кК](?![\w])", "k", text)
    text = re.sub(r"(?<![\w.,-])(\d{1,4}) k(?![\w])", r"\1k", text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![\w.,-])(\d{1,3})((?: 000)+)(?![\d])", lambda match: match[1] + match[2].replace(" ", ""), text)
    text = re.sub(r"(\d+(?:\.\d+)?) ?[万萬만]", lambda match: str(int(float(match[1]) * 10_000)), text)
    return re.sub(r"(?<![\w.,])0,(?=\d{1,3}(?!\d))", "0.", text)


def _counted_in_signs(text: str) -> str:
    """`8张`, `两卡` as ` 8x `, and `2台` as ` 2 nodes `."""
    words = load_sizing_words()
    numbers = {word: number for word, number in words.numbers.items() if _OTHER_SCRIPT.search(word)}
    number = rf"\d{{1,3}}|{'|'.join(map(re.escape, sorted(numbers, key=len, reverse=True)))}"
    text = re.sub(rf"({number}) ?[{words.counters}]", lambda match: f" {numbers.get(match[1]) or match[1]}x ", text)
    return re.sub(rf"({number}) ?[{words.machines}]", lambda match: f" {numbers.get(match[1]) or match[1]} nodes ", text)


@cache
def _number_before() -> re.Pattern[str]:
    """A number right before a card: in words, or in figures where it says what it counts (`8 cards of`, `8-gpu`)."""
    words = "|".join(map(re.escape, sorted(load_sizing_words().numbers, key=len, reverse=True)))
    counts = r"[ -](?:gpus?|cards?)(?: (?:of|de|d'|von|da))?"
    return re.compile(rf"(?i)(?<![\w.-])(?:(?P<word>{words})(?:{counts})?|(?P<figure>\d{{1,3}}){counts}) $")


def _numbers_of_boxes(text: str) -> str:
    numbers = load_sizing_words().numbers
    return re.sub(
        r"(?i)(?<![\w.-])(\w+) (?=(?:DGX|HGX|nodes?|servers?|machines?|hosts?|boxes)\b)",
        lambda match: f"{numbers.get(match[1].lower(), match[1])} ",
        text,
    )


def _counted(text: str, gpus: Gpus) -> str:
    """`auf einer H100`, `8-gpu H200`, `H200 8x` as `auf 1x H100`, `8x H200`, `H200 x8`."""
    mentions, numbers = gpus.mentions(text), load_sizing_words().numbers
    for number, mention in reversed(list(enumerate(mentions))):
        if mention.count is not None:
            continue
        behind = re.match(r" (\d{1,3})x(?= |$)", text[mention.end :])
        next_card = mentions[number + 1].start if number + 1 < len(mentions) else -1
        article, _, name = mention.text.partition(" ")
        before = _number_before().search(text[: mention.start])
        if behind and next_card not in range(mention.end, mention.end + behind.end() + 2):
            text = f"{text[: mention.end]} x{behind[1]}{text[mention.end + behind.end() :]}"
        elif article.lower() in numbers:
            text = f"{text[: mention.start]}{numbers[article.lower()]}x {name}{text[mention.end :]}"
        elif before:
            count = numbers[before["word"].lower()] if before["word"] else int(before["figure"])
            text = f"{text[: before.start()]}{count}x {text[mention.start :]}"
    return text


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
