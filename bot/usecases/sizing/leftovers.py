"""Words of a sizing question that nobody understood: corrected where they are nearly known, else left out with a sentence."""

import difflib
import re

from bot.rulebook.sizing_words import load_sizing_words
from bot.usecases.sizing.arguments import BY_NAME
from bot.usecases.sizing.formats import ALONE, QUANTIZATIONS
from bot.usecases.sizing.reader import Reader
from bot.usecases.sizing.tongues import OTHER_SCRIPT


def leftovers(reader: Reader) -> None:
    """What nobody understood: a model's name that is nearly one we know, else the nearest word that we know."""
    words = [match for match in re.finditer(r"[^\s,;?!()\"'¿¡？，。、！：（）]+", reader.rest) if _says_something(match[0])]
    if "model" not in reader.question:
        words = _nearly_a_model(reader, words)
    for match in words:
        word = match[0].rstrip(".:")
        reader.corrections.append(f"{word!r} was not understood and is left out{_hint(reader, word)}")


def _says_something(word: str) -> bool:
    """Words of Chinese, Japanese and Korean stand side by side: what is left of them without the known ones."""
    fillers, said = load_sizing_words().fillers, word.rstrip(".:").lower()
    if OTHER_SCRIPT.search(said):
        for filler in sorted((one for one in fillers if OTHER_SCRIPT.search(one)), key=len, reverse=True):
            said = said.replace(filler, "")
    return said not in fillers and bool(re.search(r"[^\W_]", said))


def _nearly_a_model(reader: Reader, words: list[re.Match[str]]) -> list[re.Match[str]]:
    """The words without those that read as a known model's name, longest run first; a figure (70b) must be in it."""
    for length in range(min(3, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            said = " ".join(match[0].rstrip(".:") for match in words[start : start + length])
            near = reader.models.nearest(said) if re.search(r"\d", said) else None
            known = reader.models.find(near) if near else None
            if known is not None:
                reader.put("model", known.id)
                reader.corrections.append(f"{said!r} is no model we know; read as {near}")
                return words[:start] + words[start + length :]
    return words


def _hint(reader: Reader, word: str) -> str:
    if size := re.fullmatch(r"(\d+) ?(?:GB|GiB|G)", word, re.IGNORECASE):
        cards = [spec.id for spec in reader.gpus.specs if spec.nominal_gb == int(size[1]) and spec.part_of is None and not spec.rare]
        return f": a size names no card, write which ({', '.join(cards[:4])}, …)" if cards else ""
    if re.fullmatch(r"\d+(?:\.\d+)?[bB]", word):
        return ": a size names no model, write which"
    near = difflib.get_close_matches(word.lower(), [*BY_NAME, *ALONE, *QUANTIZATIONS], n=1, cutoff=0.7)
    cards = list(reader.gpus.nearest(word, 1)) if re.search(r"\d", word) and re.search("[A-Za-z]", word) else []
    found = near[0] if near and near[0] != word.lower().rstrip("=:") else cards[0] if cards else None
    return f"; did you mean {found}?" if found else ""
