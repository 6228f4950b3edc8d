"""Each model family's examples, held against the bytes that sizing gives them."""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.domain.tensors import TensorGrid
from bot.rulebook.family import Example, WeightExample
from bot.usecases.sizing.question import SizingRules
from bot.usecases.sizing.size import answer
from bot.usecases.sizing.weigh import weigh

NEAR = 2e-3
"""Part of the weights by which a count may differ: small buffers that no table names."""


@dataclass(frozen=True, slots=True)
class FamilyCase:
    """One example of a family: of its cache (`example`) or of its tensors (`weights.example`). `number` counts from 1."""

    family: str
    table: str
    number: int
    example: Example | WeightExample

    @property
    def file(self) -> str:
        """Where it stands."""
        return f"models/{self.family}.toml"


def family_cases(rules: SizingRules) -> Iterator[FamilyCase]:
    """Every example of every family."""
    for name, family in rules.models.families.items():
        yield from (FamilyCase(name, "example", number, one) for number, one in enumerate(family.example, 1))
        yield from (FamilyCase(name, "weights.example", number, one) for number, one in enumerate(family.weighed, 1))


def family_faults(rules: SizingRules, case: FamilyCase) -> list[str]:
    """What sizing makes of the example that its file does not say; nothing when all is well."""
    try:
        given = _request(rules, case.example) if isinstance(case.example, Example) else _weights(rules, case.example)
    except ValueError as error:
        return [f"its example cannot be sized: {error}"]
    wanted, near = (case.example.request_bytes, 0.0) if isinstance(case.example, Example) else (case.example.bytes, NEAR)
    return [] if abs(given - wanted) <= near * wanted else [f"its example needs {given:,} bytes, not {wanted:,}"]


def _request(rules: SizingRules, example: Example) -> int:
    """Bytes of one request on the rank that needs most."""
    question = {
        "config": example.config, "engine_version": example.vllm, "gpu": "H100-80GB", "tensor_parallel_size": example.tp,
        "max_model_len": example.length, "max_num_batched_tokens": example.max_num_batched_tokens, "weights_bytes": 1, "other_bytes": 0,
    }  # fmt: skip
    return max(answer(rules, question).plan.request_bytes)


def _weights(rules: SizingRules, example: WeightExample) -> int:
    """Bytes of the weights on the first rank."""
    grid = TensorGrid(example.tp, example.pp)
    return weigh(example.config, rules.models, grid, engine_version=example.vllm, gpu="NVIDIA H100 80GB HBM3").ranks[0].resident
