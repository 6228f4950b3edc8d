"""Audio encoders, as tensors."""

from bot.reading.model.tensor_fields import Fields
from bot.reading.model.tensor_parts import vector
from bot.reading.model.tower_parts import Modules, Sizes, blocks, full


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


def qwen_audio(f: Fields) -> Modules:
    """The audio tower of Qwen's omni models: Whisper's encoder and a projection. Source: vLLM models/qwen2_5_omni_thinker.py."""
    a = Sizes(f, "audio_config")
    return [*whisper_encoder(f), full(int(a("d_model")), int(a("output_dim", default=f.find("hidden"))))]


def mel_table(f: Fields) -> Modules:
    """Inkling's ear: a table of mel values; its eye, a few matrices, is not counted. Source: vllm/models/inkling/common/towers.py."""
    a, text = Sizes(f, "audio_config"), f.find("hidden")
    return [vector((int(a("n_mel_bins", default=80)) * int(a("mel_vocab_size", default=256)) + 1) * text)]
