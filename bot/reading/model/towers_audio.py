"""Audio encoders, as tensors."""

from collections.abc import Mapping

from bot.domain.tensors import Part
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, back, blocks, full, wide

QWEN2_WORDS = 151936
"""Rows of the table of words that transformers' Qwen2Config gives where nobody says."""


def whisper_encoder(f: Fields) -> Modules:
    """Whisper's encoder: two convolutions, fixed positions, blocks without a key bias. Source: vLLM models/whisper.py."""
    v = Sizes(f, "audio_config")
    hidden = int(v("d_model", "hidden_size", default=f.raw("d_model")))
    mels = int(v("num_mel_bins", default=f.raw("num_mel_bins")))
    heads = int(v("encoder_attention_heads", "num_attention_heads", default=f.raw("encoder_attention_heads")))
    return [
        vector(3 * mels * hidden + hidden + 3 * hidden * hidden + hidden),
        vector(int(v("max_source_positions", default=f.raw("max_source_positions"))) * hidden),
        *blocks(
            int(v("encoder_layers", "num_hidden_layers", default=f.raw("encoder_layers"))), hidden, heads,
            int(v("encoder_ffn_dim", "intermediate_size", default=f.raw("encoder_ffn_dim"))),
        ),
        vector(2 * hidden),
    ]  # fmt: skip


def causal_whisper(f: Fields) -> Modules:
    """Voxtral Realtime's ear: gated, RMS norms, rotary positions for every one of its steps, and two matrices into the language model.

    Source: vLLM models/whisper_causal.py, voxtral.py AudioLanguageAdapter.
    """
    a, text = Sizes(f, "audio_config"), f.find("hidden")
    hidden, inner, mels = int(a("hidden_size")), int(a("intermediate_size")), int(a("num_mel_bins"))
    head, steps = Part(int(a("num_attention_heads")), int(a("head_dim"))), int(f.raw("downsample_factor", 4))
    one: Modules = [
        wide(hidden, head, head, head),
        back(head, hidden),
        wide(hidden, Part(inner), Part(inner), bias=False),
        back(Part(inner), hidden),
        vector(2 * hidden),
    ]
    return [
        vector(3 * mels * hidden + hidden + 3 * hidden * hidden + hidden),
        *one * plausible_layers(int(a("num_hidden_layers")), "layers in its tower"),
        vector(hidden + steps * hidden * text + text * text),
        vector(steps * f.find("positions") * head.size),
    ]


def qwen_audio(f: Fields) -> Modules:
    """The audio tower of Qwen's omni models: Whisper's encoder and a projection. Source: vLLM models/qwen2_5_omni_thinker.py."""
    a = Sizes(f, "audio_config")
    return [*whisper_encoder(f), full(int(a("d_model")), int(a("output_dim", default=f.find("hidden"))))]


def mel_table(f: Fields) -> Modules:
    """Inkling's ear: a table of mel values; its eye, a few matrices, is not counted. Source: vllm/models/inkling/common/towers.py."""
    a, text = Sizes(f, "audio_config"), f.find("hidden")
    return [vector((int(a("n_mel_bins", default=80)) * int(a("mel_vocab_size", default=256)) + 1) * text)]


def mimo_audio(f: Fields) -> Modules:
    """MiMo V2.5's ear: tables of sound tokens and a small Qwen 2 on every rank, with its unused table of words.

    What makes sound tokens has a config.json of its own and is not counted. Source: vLLM models/mimo_audio.py MimoAudioEncoder.
    """
    if not isinstance(f.config.get("audio_config"), Mapping):
        return []
    a = Sizes(f, "audio_config")
    hidden, inner = int(a("input_local_dim", default=1024)), int(a("input_local_intermediate_size", default=4096))
    out = int(a("out_hidden_size", default=4096))
    words = str(a("speech_vocab_size", default="1025-1025-129-129-129-129-129-129")).split("-")
    tables = sum(map(int, words)) * (1 if len(words) > 1 else int(a("audio_channels", default=8)))
    one = vector(4 * hidden * hidden + 3 * hidden + 3 * hidden * inner + 2 * hidden)
    joined = hidden * int(a("group_size", default=4))
    ahead = joined * 4 * (joined + out) if int(a("projection_layers", default=1)) == 2 else joined * out
    layers = plausible_layers(int(a("input_local_layers", default=6)), "layers in its tower")
    return [vector((tables + QWEN2_WORDS) * hidden), *[one] * layers, vector(ahead)]
