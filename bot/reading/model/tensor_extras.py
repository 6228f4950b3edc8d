"""What a few families keep in every layer besides attention and feed-forward."""

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, vector


def hyper_connections(f: Fields) -> Modules:
    """DeepSeek-V4's residual streams: two mixing matrices a layer, in float32."""
    streams, hidden = int(f.raw("hc_mult", 4)), f.find("hidden")
    mixes = (2 + streams) * streams
    return (vector(2 * (mixes * streams * hidden + mixes + 3), F32),)


def laurel(f: Fields) -> Modules:
    """Gemma 3n's low-rank residual, and what steers its residual streams. Source: vLLM models/gemma3n.py."""
    hidden, rank, streams = f.find("hidden"), int(f.raw("laurel_rank", 64)), int(f.raw("altup_num_inputs", 4))
    return (
        column(("laurel.linear_left",), hidden, Part(rank)),
        row("laurel.linear_right", Part(rank), hidden),
        vector(hidden, F32),
        vector(streams * streams + streams**3 + streams * hidden + 2 * hidden),
    )


def per_layer_inputs(f: Fields) -> Modules:
    """Gemma 3n's and 4's per-layer input: gate and projection in full on each rank."""
    hidden, width = f.find("hidden"), int(f.raw("hidden_size_per_layer_input", 0))
    if not width:
        return ()
    return (copied("per_layer_input_gate", hidden, width), copied("per_layer_projection", width, hidden), vector(hidden))


def delay_scale(f: Fields) -> Modules:
    """Voxtral Realtime: two narrow matrices that scale a layer by how late it may speak. Source: vLLM models/mistral.py."""
    return (vector(2 * f.find("hidden") * int(f.raw("ada_rms_norm_t_cond_dim", 32))),)
