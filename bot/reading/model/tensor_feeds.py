"""What feeds forward in a layer: dense, or experts with their router and shared ones."""

from bot.domain.tensors import Experts, Linear, Module, Part, Plain, whole
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, undealt, vector


def feed_forward(f: Fields, intermediate: int = 0) -> Modules:
    """A dense feed-forward: gate and up merged (or up alone), and down."""
    hidden, at = f.find("hidden"), f.rule("mlp_name", "mlp") + "."
    intermediate = intermediate or int(f.raw(f.rule("mlp_key", ""), 0)) or f.find("intermediate", 4 * hidden)
    if f.raw("block_auto_adjust_ff_dim"):
        step = int(f.raw("block_multiple_of", 256))
        intermediate = -(-int(float(f.raw("block_ffn_dim_multiplier", 1)) * int(2 * intermediate / 3)) // step) * step
    if f.rule("mlp_halved", False):
        intermediate //= 2
    bias = bool(f.rule("mlp_bias", False))
    parts = [Part(intermediate)] * (2 if f.rule("gated", True) else 1)
    names = f.rule("up_names", ["gate_proj", "up_proj"] if len(parts) == 2 else ["up_proj"])
    up = column(tuple(at + n for n in names), hidden, *parts, bias=bias, fused=at + "gate_up_proj")
    down = row(at + f.rule("down_name", "down_proj"), Part(intermediate), hidden, bias)
    return tuple(undealt(m) for m in (up, down)) if f.rule("mlp_whole", False) else (up, down)


def mixture(f: Fields) -> Modules:
    """A mixture of experts: router in full on each rank, experts, and shared experts dealt like a dense layer."""
    hidden, count = f.find("hidden"), f.find("experts")
    intermediate = f.find("expert_intermediate", 0) or f.find("intermediate")
    at = f"{f.rule('experts_name', 'mlp')}.".removeprefix(".")
    narrow = int(f.raw("moe_latent_size", 0) or f.raw("routed_expert_hidden_size", 0) or f.raw(f.rule("narrow_key", ""), 0))
    gated = bool(f.rule("experts_gated", True))
    router: tuple[Module, ...] = (copied(at + "gate", hidden, count, bias=bool(f.rule("router_bias", False)), quantized=False),)
    if f.rule("router_bytes", 0):
        router = (Plain((whole(hidden), whole(count)), int(f.rule("router_bytes"))),)
    least = int(f.rule("experts_least_part", 0))
    made: list[Module] = [
        *router,
        Experts(at + "experts", count, narrow or hidden, intermediate, 2 if gated else 1, bool(f.rule("experts_bias", False)), least),
    ]
    if f.rule("router_correction", False):
        made.append(vector(count, F32))
    if narrow:
        quantized = bool(f.rule("latent_quantized", True))
        made += [copied(at + f.rule("narrow_name", "fc1_latent_proj"), hidden, narrow, quantized=quantized)]
        made += [copied(at + f.rule("widen_name", "fc2_latent_proj"), narrow, hidden, quantized=quantized), vector(narrow)]
    if f.rule("mlp_beside_experts", False):
        made += [*feed_forward(f), vector(4 * hidden)]
    return (*made, *shared_experts(f, at, shared_intermediate(f, intermediate), gated))


def hashed_mixture(f: Fields) -> Modules:
    """The first layers of DeepSeek-V4: experts looked up by token in a table instead of a corrected router."""
    table = Plain((whole(f.find("vocab")), whole(f.number("num_experts_per_tok"))), 4, "experts by token")
    return (*mixture(f), table)


def beside_banks(f: Fields) -> Modules:
    """What a layer has of its own where the experts are banks that many layers share: experts that every token passes."""
    at = f"{f.rule('experts_name', 'mlp')}."
    return shared_experts(f, at, shared_intermediate(f, f.find("expert_intermediate")), bool(f.rule("experts_gated", True)))


def banks(f: Fields) -> Modules:
    """Those banks, on every stage. Source: vLLM models/interns2_mobius.py."""
    count = int(f.raw(f.rule("banks", ""), 0))
    own = len(beside_banks(f)) if count else 0
    return (mixture(f)[:-own] if own else mixture(f)) * plausible_layers(count, "banks of experts") if count else ()


def shared_experts(f: Fields, at: str, intermediate: int, gated: bool) -> Modules:
    """Experts that every token passes, as one dense layer."""
    if not intermediate:
        return ()
    hidden, name = f.find("hidden"), at + f.rule("shared_name", "shared_experts")
    part = Part(intermediate, 1, "split", int(f.rule("shared_block", 1)))
    parts = [part] * (2 if gated else 1)
    ups, downs = (("gate_proj", "up_proj"), "down_proj") if gated else (("up_proj",), "down_proj")
    gate = (copied(f"{name}_gate", hidden, 1, quantized=False),) if f.rule("shared_gate", False) else ()
    up = Linear(tuple(f"{name}.{one}" for one in ups), whole(hidden), tuple(parts), shared=True)
    down = Linear((f"{name}.{downs}",), part, (whole(hidden),), shared=True)
    return (up, down, *gate)


def shared_intermediate(f: Fields, intermediate: int) -> int:
    """Width of the shared experts together; 0 when there are none."""
    return f.find("shared_intermediate", 0) or f.find("shared_experts", int(f.rule("shared_count", 0))) * intermediate
