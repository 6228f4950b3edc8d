"""Whose rules read a config.json, and where in it the language model stands."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bot.reading.model.numbers import at_path
from bot.rulebook.models import Known, Models


@dataclass(frozen=True, slots=True)
class Resolved:
    """A config.json with its family (`outer`), that of the language model in it (`inner`; mostly the same), and that model's own part.

    `text` has what the language model's part leaves out in such a file (`silent` of the family).
    """

    config: Mapping[str, Any]
    outer: Known
    inner: Known
    text: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        """The architecture that the engine looks for."""
        return self.outer.name


def resolve(raw: Mapping[str, Any], models: Models) -> Resolved:
    """Raises UnknownArchitecture where no file knows the model, or the one in it."""
    outer = models.find(raw)
    said = language_config(raw, outer.family.traits.inside)
    text = {**outer.family.traits.silent.get(str(said.get("model_type")), {}), **said}
    return Resolved(raw, outer, models.find(text) if outer.family.traits.language else outer, text)


def language_config(raw: Mapping[str, Any], inside: Iterable[str]) -> Mapping[str, Any]:
    """The language model's part of a config: the first of `inside` that is there, else the whole."""
    for key in inside:
        value = at_path(raw, key)
        if isinstance(value, Mapping):
            return with_wide_layers(value)
    return with_wide_layers(raw)


def with_wide_layers(text: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same, with Gemma 4's sizes of layers without a window under the names of older files.

    Files of transformers 5.2x list them layer by layer (`per_layer_config`). Source: its integrations/heterogeneity.
    """
    listed = text.get("per_layer_config")
    wide = (
        next((one for one in listed.values() if isinstance(one, Mapping) and "head_dim" in one), None)
        if isinstance(listed, Mapping)
        else None
    )
    if wide is None or "global_head_dim" in text:
        return text
    return {**text, "global_head_dim": wide["head_dim"], "num_global_key_value_heads": wide.get("num_key_value_heads")}
