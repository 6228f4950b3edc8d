"""How the known quantization formats store a matrix."""

from collections.abc import Mapping

from bot.budget.quantization import Storage

E4M3_TENSOR = Storage("FP8 per tensor", bits=8, scalars=1)
E4M3_STATIC = Storage("FP8 per tensor, static activations", bits=8, scalars=2)
NVFP4 = Storage("NVFP4, 16 a group", bits=4, group=16, scale_bytes=1, scalars=2)
MXFP4 = Storage("MXFP4, 32 a group", bits=4, group=32, scale_bytes=1)
MXFP8 = Storage("MXFP8, 32 a group", bits=8, group=32, scale_bytes=1)
BNB4 = Storage("bitsandbytes 4 bits", bits=4)
BNB8 = Storage("bitsandbytes 8 bits", bits=8)
INT8_CHANNEL = Storage("INT8 per output channel", bits=8, channel=True)
FP8_CHANNEL = Storage("FP8 per output channel", bits=8, channel=True, scale_bytes=4)
FP8_BLOCK = Storage("FP8, blocks of 128 × 128", bits=8, block=(128, 128), scale_bytes=4)

ONLINE: Mapping[str, tuple[Storage | None, Storage | None]] = {
    "fp8": (E4M3_TENSOR, E4M3_TENSOR),
    "fp8_per_tensor": (E4M3_TENSOR, E4M3_TENSOR),
    "fp8_per_block": (FP8_BLOCK, FP8_BLOCK),
    "fp8_per_channel": (FP8_CHANNEL, FP8_CHANNEL),
    "ptpc_fp8": (FP8_CHANNEL, FP8_CHANNEL),
    "fbgemm_fp8": (FP8_CHANNEL, FP8_CHANNEL),
    "mxfp8": (MXFP8, MXFP8),
    "nvfp4_per_token": (NVFP4, NVFP4),
    "mxfp4": (MXFP4, MXFP4),
    "int8_per_channel_weight_only": (INT8_CHANNEL, INT8_CHANNEL),
    "experts_int8": (None, INT8_CHANNEL),
    "bitsandbytes": (BNB4, BNB4),
}
"""What `--quantization` makes of a checkpoint that is not quantized: (linear layers, experts)."""


MODELOPT: Mapping[str, Storage] = {
    "FP8": E4M3_STATIC,
    "FP8_PB_WO": FP8_BLOCK,
    "FP8_PER_CHANNEL_PER_TOKEN": FP8_CHANNEL,
    "NVFP4": NVFP4,
    "W4A16_NVFP4": NVFP4,
    "NVFP4_AWQ": NVFP4,
    "MXFP8": MXFP8,
    "MXFP4": MXFP4,
    "W4A8_MXFP4_FP8": MXFP4,
    "W4A8_AWQ": Storage("W4A8, 128 a group", bits=4, group=128, scalars=2),
    "W4A16_AWQ": Storage("W4A16, 128 a group", bits=4, group=128),
}
"""ModelOpt's algorithms."""

TORCHAO: Mapping[str, Storage] = {
    "float8": FP8_CHANNEL,
    "int8": INT8_CHANNEL,
    "int4": Storage("INT4, 128 a group", bits=4, group=128, zero_bits=16),
}
"""TorchAO's types by a part of their name; int4 keeps a 16-bit scale and zero point a group."""
