"""What else may stand in front of a language model: Llama 3.2's tower, MiniCPM's resampler, BART's encoder, Chameleon's codebook."""

from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, blocks, full, patches


def mllama_vision(f: Fields) -> Modules:
    """Llama 3.2 Vision's tower: local and gated global blocks, positions within and between tiles. Source: vLLM models/mllama.py."""
    v = Sizes(f, "vision_config")
    hidden, heads, inner = int(v("hidden_size")), int(v("attention_heads", "num_attention_heads")), int(v("intermediate_size"))
    places = (int(v("image_size")) // int(v("patch_size"))) ** 2 + 1
    shapes, tiles = int(v("max_aspect_ratio_id", default=8)) + 1, int(v("max_num_tiles", default=4))
    local, wide = int(v("num_hidden_layers")), int(v("num_global_layers", default=8))
    return [
        patches(3 * int(v("patch_size")) ** 2, hidden, bias=False),
        vector(hidden + places * hidden + shapes * tiles * places * hidden + 2 * shapes * tiles * hidden),
        *blocks(local + wide, hidden, heads, inner),
        vector(4 * hidden),
        full(int(v("vision_output_dim")), f.find("hidden")),
    ]


def resampler(f: Fields) -> Modules:
    """MiniCPM-V's resampler: learned queries read the tower through one attention. Source: vLLM models/minicpmv.py, layers/resampler.py."""
    text, tower = f.find("hidden"), int(Sizes(f, "vision_config")("hidden_size"))
    return [
        vector(int(f.raw("query_num", 64)) * text),
        full(tower, text, bias=False),
        full(text, 3 * text),
        full(text, text),
        full(text, text, bias=False),
        vector(6 * text),
    ]


def query_former(f: Fields, key: str, queries: int, seen: int) -> Modules:
    """Learned queries that read a tower of width `seen` in every other layer, and a matrix into the language model.

    Whole on each rank. Source: vLLM models/blip2.py Blip2QFormerModel.
    """
    q = Sizes(f, key)
    hidden, inner = int(q("hidden_size", default=768)), int(q("intermediate_size", default=3072))
    depth = plausible_layers(int(q("num_hidden_layers", default=12)), "layers in its query former")
    own: Modules = [*[full(hidden, hidden)] * 4, full(hidden, inner), full(inner, hidden), vector(4 * hidden)]
    reading: Modules = [*[full(hidden, hidden)] * 2, *[full(seen, hidden)] * 2, vector(2 * hidden)]
    crossed = -(-depth // int(q("cross_attention_frequency", default=2)))
    return [vector(queries * hidden + 2 * hidden), *own * depth, *reading * crossed, full(hidden, f.find("hidden"))]


def blip2_queries(f: Fields) -> Modules:
    """BLIP-2's 32 queries over its tower."""
    seen = int(Sizes(f, "vision_config")("hidden_size", default=1408))
    return query_former(f, "qformer_config", int(f.config.get("num_query_tokens", 32)), seen)


def self_conditioning(f: Fields) -> Modules:
    """Diffusion Gemma's way for a canvas into its own next round, whole on each rank. Source: vLLM models/diffusion_gemma.py."""
    hidden = f.find("hidden")
    inner = int(f.raw("self_conditioning_size", 0)) or f.find("intermediate")
    return [full(hidden, 2 * inner, False), full(inner, hidden, False), vector(hidden)]


def text_encoder(f: Fields) -> Modules:
    """BART's encoder; its embedding is the decoder's."""
    hidden = f.find("hidden")
    return [
        vector((f.find("positions") + int(f.rule("positions_extra", 0))) * hidden + 4 * hidden),
        *blocks(f.number("encoder_layers"), hidden, f.number("encoder_attention_heads"), f.number("encoder_ffn_dim")),
    ]


def picture_codebook(f: Fields) -> Modules:
    """Chameleon's codebook and its way in and out; the convolutions around it, some 40 M parameters, are counted as one vector."""
    v = Sizes(f, "vq_config")
    width, entries = int(v("embed_dim", default=256)), int(v("num_embeddings", default=8192))
    return [vector(entries * width + 2 * width * width + 40_000_000)]


MOBILENET_V5 = 294_000_000
"""Parameters of the picture tower of Gemma 3n, which its config.json only names."""


def gemma3n_towers(f: Fields) -> Modules:
    """Gemma 3n's MobileNet and its conformer for sound, with their embedders. Source: transformers models/gemma3n."""
    sound, picture, text = Sizes(f, "audio_config"), Sizes(f, "vision_config"), f.find("hidden")
    wide, seen = int(sound("hidden_size", default=1536)), int(picture("hidden_size", default=2048))
    feeds, attention, convolution = 2 * 2 * wide * 4 * wide, 5 * wide * wide, 3 * wide * wide
    layers = plausible_layers(int(sound("conf_num_hidden_layers", default=12)), "layers in its tower")
    embedders = 128 * (wide + seen) + (wide + seen) * text
    return [vector(layers * (feeds + attention + convolution) + MOBILENET_V5 + embedders)]
