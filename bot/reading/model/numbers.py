"""Numbers of a config.json by the names that a family's file gives them."""

from collections.abc import Iterable, Mapping
from math import isfinite, prod
from typing import Any

from bot.rulebook.family import Family, Field, Word, as_field

MOST_LAYERS = 4096
"""More layers than any model has; a larger count is a mistake or mischief, and a list of as many would fill the memory."""


class MissingField(ValueError):
    """A field that decides is not in the file, or cannot be meant so; the message names it."""


class Config:
    """One config.json: the language model's part first, the whole file where that part is silent."""

    __slots__ = ("architecture", "family", "known", "outer", "text")

    def __init__(self, text: Mapping[str, Any], outer: Mapping[str, Any], family: Family, architecture: str) -> None:
        self.text, self.outer, self.family, self.architecture = text, outer, family, architecture
        self.known: dict[str, int | None] = {}

    def raw(self, key: str) -> Any:
        """The value at a dotted key, None where there is none."""
        return first_value((self.text, self.outer), key)

    def get(self, name: str) -> int | None:
        """The field `name` of the family's file, None when the config does not say and there is no default."""
        if name not in self.known:
            field = self.family.fields.get(name)
            self.known[name] = None if field is None else self._read(as_field(field))
        return self.known[name]

    def need(self, name: str) -> int:
        """The same, or MissingField."""
        value = self.get(name)
        if value is None:
            looked = ", ".join(self._looked_for(name)) or name
            raise MissingField(f"config.json of {self.architecture} does not say its {name.replace('_', ' ')}: none of {looked} is there")
        return value

    def count(self, name: str) -> int:
        """The same, or MissingField when it is not at least 1."""
        value = self.need(name)
        if value < 1:
            raise MissingField(f"config.json of {self.architecture} says {value} for its {name.replace('_', ' ')}; it must be at least 1")
        return value

    def word(self, word: Word) -> str | None:
        """A text value, or its default."""
        value = self.raw(word.key) if word.key else None
        return value.removeprefix("torch.") if isinstance(value, str) else word.default

    def dtype(self) -> str:
        """The type of the weights as the file says; `float32` when it does not, as transformers takes it."""
        return str(self.raw("dtype") or self.raw("torch_dtype") or "float32").removeprefix("torch.")

    def positions(self) -> int | None:
        """The longest context that the engine derives: what the file states, or the least of all keys that limit it, stretched by
        rope scaling. None when nothing limits it.
        """
        limit = self.get("stated_positions") or self.get("positions")
        return limit and stretched(limit, self.raw("rope_scaling") or self.raw("rope_parameters"), str(self.raw("model_type") or ""))

    def _read(self, field: Field) -> int | None:
        found = [value for value in map(self._number, field.keys) if value is not None]
        if found:
            return min(found) if field.smallest else found[0]
        combined = self._combined(field)
        return field.default if combined is None else combined

    def _combined(self, field: Field) -> int | None:
        terms = [self._term(part) for part in (*field.sum, *field.product, *field.quotient)]
        numbers = [term for term in terms if term is not None]
        if not terms or len(numbers) < len(terms):
            return None
        if field.quotient:
            return numbers[0] // numbers[1] if numbers[1] else None
        return sum(numbers) if field.sum else prod(numbers)

    def _term(self, part: str) -> int | None:
        return self.get(part) if part in self.family.fields else self._number(part)

    def _number(self, key: str) -> int | None:
        value = self.raw(key)
        if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
            return None
        return int(value)

    def _looked_for(self, name: str) -> Iterable[str]:
        field = as_field(self.family.fields.get(name, ""))
        return [*field.keys, *field.sum, *field.product, *field.quotient]


def first_value(tables: Iterable[Mapping[str, Any]], path: str) -> Any:
    """The value at a dotted path of the first table that has one there; null counts as absent."""
    return next((value for table in tables if (value := at_path(table, path)) is not None), None)


def at_path(config: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; a number steps into a list; None where the path ends early."""
    value: Any = config
    for step in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def stretched(limit: int, scaling: Any, model_type: str) -> int:
    """`limit` after rope scaling. Source: vllm/config/model.py _get_and_verify_max_len.

    Types that state the stretched length themselves, and Gemma 3, are left alone; YaRN stretches the original length.
    """
    if not isinstance(scaling, Mapping) or "gemma3" in model_type:
        return limit
    kind = scaling.get("rope_type") or scaling.get("type")
    factor = scaling.get("factor")
    if kind in {None, "default", "su", "longrope", "llama3", "mrope"} or not isinstance(factor, int | float):
        return limit
    original = scaling.get("original_max_position_embeddings") if kind == "yarn" else None
    return int((original or limit) * factor)
