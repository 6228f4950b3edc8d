"""rules/accounting/planner.toml: how each engine version plans its KV cache pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import msgspec
from packaging.version import Version

from bot.domain.accounting import KvDtype, PlannerRules
from bot.domain.size import GIB
from bot.rulebook.load import RulebookError, one_file
from bot.rulebook.versions import holds, is_range, release

FILE = "accounting/planner.toml"


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The value of one term for a range of versions."""

    term: str
    vllm: str
    value: str | bool | int | float | tuple[str, ...]
    source: str


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens per batch and requests at once by default, on devices of at least `memory_gib`: those of `only`, but for those of `unless`.

    `whole`: a batch holds a whole prompt of any length, unless prompts are read in chunks of `chunk` tokens (0: only when asked for).
    """

    vllm: str
    tokens: int
    seqs: int
    source: str
    memory_gib: int = 0
    only: list[str] = []
    unless: list[str] = []
    whole: bool = False
    chunk: int = 0

    def stands(self, memory: float, gpu: str) -> bool:
        """Whether it holds on a device of so many GiB with that name."""
        named = not self.only or any(name in gpu for name in self.only)
        return memory >= self.memory_gib and named and not any(name in gpu for name in self.unless)


class KvKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Values of --kv-cache-dtype that keep keys and values in one way."""

    names: list[str]
    bits: tuple[float, float]
    extra: tuple[int, int] = (0, 0)
    vllm: str = ">=0"
    skip_edges: int = 0
    block: int = 0


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens per block that an attention kernel asks for. `compute`: CUDA capabilities of the cards that use it."""

    caches: str
    tokens: int
    source: str
    vllm: str = ">=0"
    kv: str = ""
    compute: list[str] = []


class SparseFp8(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CUDA capabilities whose kernel keeps sparse latents as plain FP8; on others the scales are kept inside."""

    vllm: str
    plain: list[str]
    source: str


class LeastCompute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The CUDA capability below which the engine refuses these quantization methods."""

    methods: list[str]
    compute: str
    source: str
    vllm: str = ">=0"


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    versions: list[str]
    rule: list[Rule]
    batch: list[Batch]
    kv_dtype: list[KvKind]
    sparse_fp8: list[SparseFp8]
    block: list[Block]
    least_compute: list[LeastCompute]


@dataclass(frozen=True, slots=True, eq=False)
class Planning:
    """The planner's rules for every version. Versions are compared as PEP 440 says; a pre-release counts as its release."""

    file: File
    newest: str

    def rules(self, version: str) -> PlannerRules:
        """What holds for `version`. Raises UnknownVersion when it is none."""
        return _rules(self, version)

    def beyond(self, version: str) -> str | None:
        """A sentence where `version` lies outside of those that were looked at; None inside. Raises UnknownVersion."""
        asked, oldest = Version(release(version)), min(self.file.versions, key=Version)
        if asked > Version(self.newest):
            return f"vLLM {version} is newer than {self.newest}, the newest that this plan was held against"
        if asked < Version(oldest):
            return f"vLLM {version} is older than {oldest}, the oldest that this plan was held against"
        return None

    def kv_dtype(self, name: str, version: str) -> KvDtype | None:
        """How that --kv-cache-dtype keeps keys and values; None when that version does not take it."""
        for kind in self.file.kv_dtype:
            if name in kind.names and holds(kind.vllm, version):
                return KvDtype(name, *kind.bits, *kind.extra, kind.skip_edges, kind.block)
        return None

    def kv_dtypes(self, version: str) -> list[str]:
        """Every value of --kv-cache-dtype that `version` takes."""
        return [name for kind in self.file.kv_dtype if holds(kind.vllm, version) for name in kind.names]

    def batch(self, version: str, gpu: str, total_bytes: int | None) -> Batch:
        """Default batch size and request limit on a device of that name and size."""
        memory = (total_bytes or 0) / GIB
        return next(batch for batch in self.file.batch if holds(batch.vllm, version) and batch.stands(memory, gpu))

    def block(self, caches: str, kv: str, compute: str, version: str) -> int | None:
        """Tokens per block that the kernel for these caches asks for; None when it takes the general default."""
        for one in self.file.block:
            if one.caches == caches and kv.startswith(one.kv) and (not one.compute or compute in one.compute) and holds(one.vllm, version):
                return one.tokens
        return None

    def packs_sparse(self, compute: str, version: str) -> bool:
        """Whether sparse latents in FP8 are kept with their scales inside on cards of that CUDA capability."""
        return not any(compute in one.plain for one in self.file.sparse_fp8 if holds(one.vllm, version))

    def least_compute(self, method: str, version: str) -> str | None:
        """The CUDA capability below which that version refuses the quantization method; None where it asks for none."""
        return next((one.compute for one in self.file.least_compute if method in one.methods and holds(one.vllm, version)), None)


@cache
def load_planning(folder: Path | None = None) -> Planning:
    """The planner's rules of a rules folder; RulebookError with every problem when the file is broken."""
    file = one_file(FILE, File, folder)
    problems = [f"{FILE}: {problem}" for problem in _problems(file)]
    if problems:
        raise RulebookError(problems)
    return Planning(file, max(file.versions, key=Version))


def _problems(file: File) -> list[str]:
    ranged: list[Rule | Batch | KvKind | SparseFp8 | Block | LeastCompute]
    ranged = [*file.rule, *file.batch, *file.kv_dtype, *file.sparse_fp8, *file.block, *file.least_compute]
    ranges = [one.vllm for one in ranged]
    broken = [f"vllm = {spec!r} is not a version range" for spec in ranges if not is_range(spec)]
    if broken:
        return broken
    names = sorted({rule.term for rule in file.rule} | set(PlannerRules.__annotations__))
    found = [_problem(file.rule, term, version) for term in names for version in file.versions]
    return sorted({problem for problem in found if problem})


def _problem(rules: Sequence[Rule], term: str, version: str) -> str | None:
    if term not in PlannerRules.__annotations__:
        return f"rule {term}: the planner has no such term; it has {', '.join(PlannerRules.__annotations__)}"
    rows = [rule for rule in rules if rule.term == term and holds(rule.vllm, version)]
    if len(rows) != 1:
        return f"rule {term}: {len(rows)} rows hold for {version}, it must be one"
    try:
        msgspec.convert(rows[0].value, PlannerRules.__annotations__[term])
    except msgspec.ValidationError as error:
        return f"rule {term}: {error}"
    return None


@lru_cache(maxsize=256)
def _rules(planning: Planning, version: str) -> PlannerRules:
    values = {rule.term: rule.value for rule in planning.file.rule if holds(rule.vllm, version)}
    return PlannerRules(**values)  # type: ignore[arg-type] # every value was converted to its term's type when the file was read
