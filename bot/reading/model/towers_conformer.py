"""Conformers: audio encoders of convolution and attention by turns, whole on each rank but where said, as tensors."""

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, back, full, patches, wide
from bot.reading.model.towers_other import query_former


def phi4_audio(f: Fields) -> Modules:
    """Phi-4 Multimodal's encoder and a projector each for speech alone and beside pictures. Source: vLLM models/phi4mm_audio.py."""
    told = f.raw("audio_processor.config") or {}
    width, inner, text = int(told.get("attention_dim", 1024)), int(told.get("linear_units", 1536)), f.find("hidden")
    channels = int((told.get("nemo_conv_settings") or {}).get("conv_channels", 1024))
    feed: Modules = [full(width, 2 * inner), full(inner, width), vector(2 * width)]
    attention: Modules = [full(width, width)] * 4
    convolution: Modules = [full(width, 2 * width), full(width, width), full(width, width), vector((2 + 2 + 4) * width)]
    one = [*feed, *feed, *attention, *convolution, vector(4 * width)]
    bands = -(-int(told.get("input_size", 80)) // int(told.get("time_reduction", 8)))
    return [
        vector(10 * channels + 2 * 10 * channels),
        *[full(channels, channels)] * 2,
        full(channels * bands, width),
        *one * plausible_layers(int(told.get("num_blocks", 24)), "layers in its audio encoder"),
        *[full(width, text), full(text, text)] * 2,
    ]


def phi4_vision(f: Fields) -> Modules:
    """Phi-4 Multimodal's SigLIP without its last layer, on 448 pixels, and a projector. Source: vLLM models/phi4mm.py."""
    hidden, heads, inner, depth, patch, text = 1152, 16, 4304, 26, 14, f.find("hidden")
    head = Part(heads, hidden // heads)
    one: Modules = [
        wide(hidden, head, head, head), back(head, hidden), wide(hidden, Part(inner)), back(Part(inner), hidden), vector(4 * hidden),
    ]  # fmt: skip
    places = vector((448 // patch) ** 2 * hidden + 2 * hidden)
    return [patches(3 * patch * patch, hidden), places, *one * depth, full(hidden, text), full(text, text)]


def granite_audio(f: Fields) -> Modules:
    """Granite Speech's encoder, and queries that read it on the way to the language model. Source: vLLM models/granite_speech.py."""
    e = Sizes(f, "encoder_config")
    width, heads, head = int(e("hidden_dim", default=1024)), int(e("num_heads", default=8)), int(e("dim_head", default=128))
    inner, expanded = width * int(e("feedforward_mult", default=4)), width * int(e("conv_expansion_factor", default=2))
    out = int(e("output_dim", default=256))
    feed: Modules = [wide(width, Part(inner)), back(Part(inner), width), vector(2 * width)]
    attention: Modules = [full(width, 3 * heads * head, False), full(heads * head, width), vector(2 * width)]
    places = vector((2 * int(e("max_pos_emb", default=512)) + 1) * head)
    kernel = int(e("conv_kernel_size", default=15))
    convolution: Modules = [full(width, 2 * expanded), full(expanded, width), vector(2 * width + (kernel + 4) * expanded)]
    one = [*feed, *feed, *attention, places, *convolution, vector(2 * width)]
    return [
        full(int(e("input_dim", default=160)), width),
        *one * plausible_layers(int(e("num_layers", default=16)), "layers in its audio encoder"),
        wide(width, Part(out)),
        back(Part(out), width),
        *query_former(f, "projector_config", int(f.raw("window_size", 15)) // int(f.raw("downsample_rate", 5)), width),
    ]


def conformer(f: Fields) -> Modules:
    """Cohere Transcribe's encoder and its way to the decoder, biases everywhere. Source: vLLM models/cohere_asr.py ConformerEncoder."""
    e = Sizes(f, "encoder")
    width, channels, kernel = int(e("d_model")), int(e("subsampling_conv_channels", default=256)), int(e("conv_kernel_size", default=9))
    inner = width * int(e("ff_expansion_factor", default=4))
    bands = int(e("feat_in", default=128)) // int(e("subsampling_factor", default=8))
    feed: Modules = [full(width, inner), full(inner, width)]
    attention: Modules = [*[full(width, width)] * 4, full(width, width, False), vector(2 * width)]
    convolution: Modules = [full(width, 2 * width), full(width, width), vector((kernel + 1 + 4) * width)]
    one = [*feed, *feed, *attention, *convolution, vector(10 * width)]
    return [
        vector(10 * channels + 2 * 10 * channels),
        *[full(channels, channels)] * 2,
        full(channels * bands, width),
        *one * plausible_layers(int(e("n_layers")), "layers in its audio encoder"),
        full(width, f.find("hidden")),
    ]


def parakeet(f: Fields) -> Modules:
    """Parakeet and its projector, in NVIDIA's models that hear; nothing without a sound_config. Source: vLLM models/parakeet.py."""
    if not f.config.get("sound_config"):
        return []
    s = Sizes(f, "sound_config")
    width, inner, text = int(s("hidden_size", default=1024)), int(s("intermediate_size", default=4096)), f.find("hidden")
    kernel, channels = int(s("conv_kernel_size", default=9)), int(s("subsampling_conv_channels", default=256))
    between = int(s("projection_hidden_size", default=4096))
    bands = int(s("num_mel_bins", default=128)) // int(s("subsampling_factor", default=8))
    feed: Modules = [full(width, inner, False), full(inner, width, False)]
    attention: Modules = [full(width, width, False)] * 5
    convolution: Modules = [full(width, 2 * width, False), full(width, width, False), vector((kernel + 4) * width)]
    one = [*feed, *feed, *attention, *convolution, vector(12 * width)]
    return [
        vector(10 * channels + 2 * 10 * channels),
        *[full(channels, channels)] * 2,
        full(channels * bands, width),
        *one * plausible_layers(int(s("num_hidden_layers", default=24)), "layers in its audio encoder"),
        vector(width),
        full(width, between, False),
        full(between, text, False),
    ]
