"""Fields of a config.json by the many names that families give them."""

from collections.abc import Mapping, Sequence
from typing import Any

from bot.reading.model.numbers import MOST_LAYERS, MissingField, first_value
from bot.reading.model.resolved import resolve
from bot.rulebook.models import Models

NAMES: Mapping[str, Sequence[str]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "n_embed", "model_dim", "dim"),
    "layers": ("decoder_layers", "num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("decoder_attention_heads", "num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num", "num_query_groups",
                 "num_attention_groups", "attn_config.kv_n_heads"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "intermediate": ("decoder_ffn_dim", "intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "hidden_dim",
                     "ffn_config.ffn_hidden_size"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "positions": ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "n_ctx"),
    "experts": (
        "n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts", "num_moe_experts", "n_experts", "num_routed_experts",
        "ffn_config.moe_num_experts",
    ),
    "expert_intermediate": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size", "expert_intermediate_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_intermediate": (
        "shared_expert_intermediate_size", "shared_intermediate_size", "moe_shared_expert_intermediate_size", "share_expert_dim",
    ),
    "theta": ("rope_theta",),
}  # fmt: skip


def plausible_layers(count: int, what: str = "layers") -> int:
    """The same count; MissingField when no model has so many."""
    if not 0 <= count <= MOST_LAYERS:
        raise MissingField(
            f"config.json has {count:,} {what}: between 1 and {MOST_LAYERS:,} can be meant; check the file, or give --weights-bytes"
        )
    return count


class Fields:
    """One config.json: the language part first, then what stands around it, then the family's own defaults."""

    def __init__(self, config: Mapping[str, Any], text: Mapping[str, Any], rules: Mapping[str, Any]) -> None:
        self.config, self.text, self.rules = config, text, rules
        self.defaults: Mapping[str, Any] = rules.get("defaults") or {}

    def changed(self, **values: int) -> "Fields":
        """The same file with some of the language part's keys changed, as one of its layers has them."""
        return Fields(self.config, {**self.text, **values}, self.rules)

    def without_towers(self) -> "Fields":
        """The same without its vision and audio towers."""
        return Fields(self.config, self.text, {**self.rules, "towers": ()})

    def raw(self, key: str, default: Any = None) -> Any:
        """A key as the file writes it, dotted for a table within; null counts as absent."""
        value = first_value((self.text, self.config, self.defaults), key)
        return default if value is None else value

    def number(self, *keys: str) -> int:
        """The first of `keys` that holds a number; MissingField when none does."""
        for key in keys:
            value = self.raw(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return int(value)
        raise MissingField(f"config.json has no {' / '.join(keys)}: add it, or give --weights-bytes")

    def table(self, key: str) -> list[Mapping[str, Any]]:
        """A list of tables; MissingField when there is none."""
        value = self.raw(key)
        if not isinstance(value, list):
            raise MissingField(f"config.json has no {key}: add it, or give --weights-bytes")
        return value

    def find(self, word: str, default: int | None = None) -> int:
        """A number by our word; MissingField when the file has none of its names and there is no default."""
        for key in NAMES[word]:
            value = _alike(self.raw(key) if "." in key else self.text.get(key))
            if isinstance(value, int | float) and not isinstance(value, bool):
                return int(value)
        for key in (*NAMES[word], word):
            value = self.defaults.get(key)
            if isinstance(value, int):
                return value
        if default is None:
            raise MissingField(f"config.json has no {' / '.join(NAMES[word])}: add it, or give --weights-bytes")
        return default

    def rule(self, name: str, default: Any = None) -> Any:
        """What the family's [weights] table says; `{ key = …, default = … }` reads the config."""
        value = self.rules.get(name, default)
        if isinstance(value, Mapping) and "key" in value:
            found = self.raw(str(value["key"]), value.get("default", default))
            return value["map"].get(str(found).lower(), found) if "map" in value else found
        return value


def _alike(value: Any) -> Any:
    """The one figure of a list that gives every layer the same; anything else as it is."""
    return value[0] if isinstance(value, list) and value and all(one == value[0] for one in value) else value


def fields_of(config: Mapping[str, Any], models: Models, version: str, gpu: str = "") -> Fields:
    """A config.json beside its family's [weights] for one engine version and GPU (as the engine or a log names it).

    Raises UnknownArchitecture where no file knows the model, or the one in it.
    """
    found = resolve(config, models)
    return Fields(config, found.text, models.weights(found.outer, found.inner, version, gpu))
