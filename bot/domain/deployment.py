"""How the engine was started, each setting with the line that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from bot.domain.known import Known

Setting = str | int | float | bool
EMPTY: Mapping[str, Known[Setting]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Deployment:
    """`arguments` by the engine's own names (`gpu_memory_utilization`), `environment` by variable.

    `tried` holds a flag that the paste tried at several values; `host` the machine's own memory in bytes
    (memory_bytes, limit_bytes, rss_bytes, shm_bytes). `commands` holds each start as the person gave it, in the order of the text;
    `given` the names of arguments that a flag or a person gave, not the engine's own report.
    """

    model: Known[str] | None = None
    gpu: Known[str] | None = None
    gpu_count: Known[int] | None = None
    arguments: Mapping[str, Known[Setting]] = field(default_factory=lambda: EMPTY)
    environment: Mapping[str, Known[Setting]] = field(default_factory=lambda: EMPTY)
    tried: Mapping[str, tuple[Setting, ...]] = field(default_factory=dict)
    host: Mapping[str, Known[int]] = field(default_factory=dict)
    launcher: Known[str] | None = None
    commands: tuple[Known[tuple[str, ...]], ...] = ()
    given: frozenset[str] = frozenset()

    def value(self, name: str) -> Setting | None:
        """The value of one engine argument, or None when nothing says it."""
        known = self.arguments.get(name)
        return None if known is None else known.value

    def number(self, name: str) -> float | None:
        """The same as a number, or None when it is none (`auto`)."""
        value = self.value(name)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
