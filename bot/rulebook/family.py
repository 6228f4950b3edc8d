"""One file of rules/models: how a family's config.json reads, what its layers keep, and how its tensors are made."""

from typing import Any

import msgspec


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a number stands in config.json: the first key that holds one, else a sum, product or quotient, else the default.

    A key may be dotted; the terms of a combination are other fields, or keys. `smallest`: the least of all keys that hold a number.
    """

    key: str | list[str] = ""
    sum: list[str] = []
    product: list[str] = []
    quotient: list[str] = []
    default: int | None = None
    smallest: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, in the order in which they are tried."""
        return tuple([self.key] if isinstance(self.key, str) else self.key) if self.key else ()


def as_field(value: Field | str | int) -> Field:
    """A field as the file may abbreviate it: a key, or a number that always holds."""
    if isinstance(value, Field):
        return value
    return Field(key=value) if isinstance(value, str) else Field(default=value)


class LayerRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reader of the layer pattern; exactly one of `all`, `list`, `letters`, `every`, `indices`, `blocks`.

    It is passed over when its key is missing, when a field in `when` has no value (or not the value said), or when one in `unless` has.
    `after`: a field m for `every`; the first m layers are `nth`, and the counting starts behind them. `rest`: what `every` makes of the
    layers behind the last whole stretch of n.
    `list`, `letters`: a key whose items `map` to kinds. `every`: a field n; layer i is `nth` where i mod n = `at` (default n − 1),
    else `others`. `indices`: a key listing the layers that are `nth`.
    `blocks`: a key with one table per layer, read as Nemotron-NAS writes them. `last`: what the last layer is, whatever the pattern says.
    `among`: a key listing the layers that `list` is read for; the rest are `others`. `first`: the number that the file gives to the first
    layer. `shared`: a field n; the last n layers read the cache of earlier ones. `ahead`: a field n; so many layers of the kind `ahead_are`
    keep something before the first, as an ear does that hears word by word.
    """

    all: str = ""
    list: str = ""
    letters: str = ""
    every: str = ""
    indices: str = ""
    blocks: str = ""
    map: dict[str, str] = {}
    nth: str = ""
    others: str = ""
    at: int | str | None = None
    after: str = ""
    last: str = ""
    rest: str = ""
    among: str = ""
    first: int = 0
    shared: str = ""
    ahead: str = ""
    ahead_are: str = ""
    when: dict[str, Any] = {}
    unless: dict[str, Any] = {}

    @property
    def reader(self) -> str:
        """Which of the readers this is; empty when none or several are named."""
        named = [name for name in ("all", "list", "letters", "every", "indices", "blocks") if getattr(self, name)]
        return named[0] if len(named) == 1 else ""

    @property
    def kinds(self) -> set[str]:
        """The kinds of layer that this rule can give."""
        return {kind for kind in (self.all, self.nth, self.others, self.last, self.rest, self.ahead_are, *self.map.values()) if kind}


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config.json excerpt and the bytes that one request of `length` tokens needs per rank."""

    config: dict[str, Any]
    request_bytes: int
    length: int
    tp: int = 1
    vllm: str = "0.33.0"
    max_num_batched_tokens: int = 8192


class Mtp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Layers behind the last one that predict further tokens (`mtp`, `dspark`), where a model's own file describes its draft.

    `layers`: keys that may hold their number; `default` where none does. `most`: the engine runs no more of them. `kind`: what each keeps,
    one of [kinds], or `listed` where the file's list of layers goes on with them. `only`: keys whose other values we do not know. How they
    are made as tensors stands in [weights] under the same name.
    """

    kind: str
    layers: list[str] = msgspec.field(default_factory=lambda: ["num_nextn_predict_layers"])
    default: int | None = None
    most: int | None = None
    only: dict[str, Any] = {}


class Word(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a word stands in config.json, and what holds when it does not."""

    key: str = ""
    default: str | None = None


class Traits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine does with a family beyond its caches.

    `inside`: keys under which the language model's own config stands. `language`: that config is another family's. `silent`: what such a
    config leaves out, by its model_type.
    `packed`: pages of several sizes lie side by side. `pipeline`: whether the engine's class supports pipeline parallelism.
    `block`: tokens per block when its kernel fixes one. `sparse`: an indexer picks the tokens. `kv_dtype`: how `auto` keeps its KV cache.
    `state_dtype`: how `auto` keeps recurrent state, when not as the model's own type.
    """

    inside: tuple[str, ...] = ("text_config", "llm_config", "language_config")
    language: bool = False
    silent: dict[str, dict[str, int]] = {}
    packed: bool = False
    pipeline: bool = True
    block: int = 0
    sparse: bool = False
    kv_dtype: str | None = None
    state_dtype: Word = Word()


class WeightExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A config.json excerpt, and the bytes that the engine counted on the first rank of this grid."""

    config: dict[str, Any]
    vllm: str
    bytes: int
    tp: int = 1
    pp: int = 1


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file, called like the family. What its [weights] may say: bot/rulebook/weight_options.py."""

    family: str
    architectures: list[str] = []
    model_types: list[str] = []
    sources: list[str] = []
    fields: dict[str, Field | str | int] = {}
    kinds: dict[str, list[dict[str, Any]]] = {}
    layers: list[LayerRule] = []
    traits: Traits = Traits()
    mtp: Mtp | None = None
    dspark: Mtp | None = None
    example: list[Example] = []
    weights: dict[str, Any] = {}

    @property
    def by_device(self) -> bool:
        """Whether it says what devices of one generation keep (`Name on 10`); what the model weighs stands with `Name`."""
        return bool(self.architectures) and all(" on " in name for name in self.architectures)

    @property
    def weighed(self) -> list[WeightExample]:
        """What the engine was seen to count of its tensors."""
        return msgspec.convert(self.weights.get("example", []), list[WeightExample])
