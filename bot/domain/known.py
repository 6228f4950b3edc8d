"""A value together with how we know it."""

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Origin = Literal["log", "assumed"]


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """`value`, its `origin`, and the source and 1-based line that it was read from (None where no line says it)."""

    value: T
    origin: Origin = "log"
    source: int | None = None
    line: int | None = None
