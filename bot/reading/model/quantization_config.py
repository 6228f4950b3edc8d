"""A checkpoint's quantization settings, or the --quantization argument, as the storage of each module."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.budget.quantization import Names, Quantization, Storage, with_experts_as_one
from bot.domain.tensors import Unplaceable
from bot.reading.model.stored_formats import (
    BNB4,
    BNB8,
    E4M3_STATIC,
    E4M3_TENSOR,
    FP8_CHANNEL,
    MODELOPT,
    MXFP4,
    MXFP8,
    NVFP4,
    ONLINE,
    TORCHAO,
)


class UnknownQuantization(ValueError):
    """A quantization method that we cannot turn into bytes; the message names it."""


def read_quantization(
    config: Mapping[str, Any], rules: Mapping[str, Any], beside: Mapping[str, Any] | None = None, argument: str | None = None
) -> Quantization:
    """Settings in config.json, else hf_quant_config.json `beside` it, else the `--quantization` argument.

    `rules`: the family's [weights] table, already narrowed. UnknownQuantization when the method is not one we know.
    """
    settings = settings_of(config) or beside
    if settings:
        return fitted(_checkpoint(settings), rules)
    if not argument or argument in ("none", "auto"):
        return Quantization()
    if argument not in ONLINE:
        raise UnknownQuantization(f"--quantization {argument}: the checkpoint says nothing of it, and it cannot be made while loading")
    if argument not in rules.get("online", ONLINE):
        known = ", ".join(rules["online"])
        raise Unplaceable(f"--quantization {argument}: this version cannot quantize to it while loading; it can to {known}")
    linear, experts = ONLINE[argument]
    return Quantization(
        f"quantized while loading ({argument})", linear, experts, online="whole" if rules.get("online_peak") == "whole" else "layer"
    )


def fitted(quantization: Quantization, rules: Mapping[str, Any]) -> Quantization:
    """The same with what the family, the engine version and the GPU's kernels add to stored experts: padding, index vectors."""
    experts = quantization.experts
    if rules.get("expert_storage") == "fp4" and experts is not None:
        experts = MXFP4
    if experts is None:
        return quantization
    linear = quantization.linear
    if linear and linear.block:
        linear = replace(linear, scale_bytes=int(rules.get("block_scale_bytes", 4)))
    packed = experts.group is not None and experts.scale_bytes == 2
    experts = replace(
        experts,
        pad=int(rules.get("experts_pad", 1)),
        pad_whole=bool(rules.get("experts_pad_whole", False)),
        pad_hidden=int(rules.get("experts_pad_hidden", 1)),
        expert_orders=int(rules.get("packed_expert_orders", 0)) if packed else 0,
        whole_blocks=bool(rules.get("experts_whole_blocks", False)),
    )
    return replace(quantization, linear=linear, experts=experts)


def settings_of(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Quantization settings as config.json or its language part holds them; None where it has none."""
    parts = [config, *(config.get(key) for key in ("text_config", "llm_config", "language_config", "compression_config"))]
    said = (part.get("quantization_config") for part in parts if isinstance(part, Mapping))
    return next(filter(None, said), None) or config.get("compression_config")


def _checkpoint(settings: Mapping[str, Any]) -> Quantization:
    inner = settings.get("quantization")
    if isinstance(inner, Mapping):
        settings = {**settings, **inner}
    method = str(settings.get("quant_method") or "").lower().replace("_", "-")
    if method.startswith("modelopt") or (settings.get("quant_algo") and method != "fp8"):
        return _modelopt(settings)
    if method not in READERS:
        raise UnknownQuantization(f"quant_method {method or '(missing)'}: we do not know how many bytes it stores; give --weights-bytes")
    return READERS[method](settings)


def _skipped(settings: Mapping[str, Any]) -> Names:
    named = [str(entry) for key in SKIPPED for entry in settings.get(key) or ()]
    # GPTQModel writes `-:pattern`, AutoRound a table of modules with the bits of each
    dynamic = [f"re:{key[2:]}" for key in settings.get("dynamic") or () if key.startswith("-:")]
    wide = [name for name, told in (settings.get("extra_config") or {}).items() if isinstance(told, Mapping) and told.get("bits", 0) >= 16]
    return Names.of([*named, *dynamic, *wide])


SKIPPED = (
    "modules_to_not_convert",
    "ignored_layers",
    "ignore",
    "exclude",
    "exclude_modules",
    "llm_int8_skip_modules",
    "modules_to_not_quantize",
)
"""Keys under which quantization settings list what they leave alone."""


def _fp8(settings: Mapping[str, Any]) -> Quantization:
    block = settings.get("weight_block_size")
    if block:
        storage = Storage(f"FP8, blocks of {block[0]} × {block[1]}", bits=8, block=(block[0], block[1]), scale_bytes=4)
    else:
        storage = E4M3_STATIC if settings.get("activation_scheme") == "static" else E4M3_TENSOR
    # a mixed checkpoint names apart what is not FP8; its `ignore` speaks of that other part
    assigned = _assigned(settings.get("quantized_layers") or {})
    skipped = _skipped({key: value for key, value in settings.items() if key != "ignore"} if assigned else settings)
    return Quantization(storage.title, storage, storage, skipped, assigned)


def _awq(settings: Mapping[str, Any]) -> Quantization:
    bits, group = (
        int(settings.get("bits") or settings.get("w_bit") or 4),
        int(settings.get("group_size") or settings.get("q_group_size") or 128),
    )
    storage = Storage(f"AWQ {bits} bits, {group} a group", bits=bits, group=group, zero_bits=bits)
    return Quantization(storage.title, storage, storage, _skipped(settings))


def _gptq(settings: Mapping[str, Any]) -> Quantization:
    """GPTQ, and what settings of its own a module may have: `+:pattern` in `dynamic` as GPTQModel writes it."""
    own = {key.removeprefix("+:"): said for key, said in (settings.get("dynamic") or {}).items() if said and not key.startswith("-:")}
    matched = tuple((Names.of([f"re:{key}"]), _gptq_storage({**settings, **said})) for key, said in own.items())
    storage = _gptq_storage(settings)
    return Quantization(storage.title, storage, storage, _skipped(settings), matched=matched, head=bool(settings.get("lm_head")))


def _gptq_storage(settings: Mapping[str, Any]) -> Storage:
    bits, group = int(settings.get("bits") or 4), int(settings.get("group_size") or 128)
    ordered = bool(settings.get("desc_act"))
    return Storage(f"GPTQ {bits} bits, {group} a group", bits=bits, group=group, zero_bits=bits, orders=int(ordered), whole_scales=ordered)


def _mxfp4(settings: Mapping[str, Any]) -> Quantization:
    storage = Storage("experts in MXFP4, 32 a group", bits=4, group=32, scale_bytes=1)
    return Quantization(storage.title, None, storage, _skipped(settings))


def _bitsandbytes(settings: Mapping[str, Any]) -> Quantization:
    storage = BNB8 if settings.get("load_in_8bit") else BNB4
    return Quantization(storage.title, storage, storage, _skipped(settings))


def _fbgemm(settings: Mapping[str, Any]) -> Quantization:
    return Quantization(FP8_CHANNEL.title, FP8_CHANNEL, FP8_CHANNEL, _skipped(settings))


def _modelopt(settings: Mapping[str, Any]) -> Quantization:
    algo = str(settings.get("quant_algo") or "FP8").upper()
    skipped = _skipped(settings)
    if algo == "MIXED_PRECISION":
        layers = settings.get("quantized_layers") or {}
        return Quantization("modelopt, mixed precision", None, None, skipped, _assigned(layers))
    storage = _modelopt_storage(algo)
    return Quantization(f"modelopt {storage.title}", storage, storage, skipped)


def _modelopt_storage(algo: str) -> Storage:
    if algo not in MODELOPT:
        raise UnknownQuantization(f"modelopt quant_algo {algo}: we do not know how many bytes it stores; give --weights-bytes")
    return MODELOPT[algo]


def _assigned(layers: Mapping[str, Any]) -> Mapping[str, Storage]:
    found: dict[str, Storage] = {}
    for name, settings in layers.items():
        short = with_experts_as_one(name)
        if short not in found:
            found[short] = _modelopt_storage(str(settings.get("quant_algo") if isinstance(settings, Mapping) else settings).upper())
    return found


def _compressed(settings: Mapping[str, Any]) -> Quantization:
    """Compressed tensors: a group for all linear layers, and groups for what is named; without any group nothing is quantized."""
    groups: Sequence[Mapping[str, Any]] = list((settings.get("config_groups") or {}).values())
    if not groups and settings.get("format") != "dense":
        raise UnknownQuantization("compressed-tensors without config_groups: add them, or give --weights-bytes")
    stored = [(_targets(one), _group(one, str(one.get("format") or settings.get("format") or ""))) for one in groups]
    main = next((storage for targets, storage in stored if any(target in CLASSES for target in targets)), None)
    matched = tuple((Names.of(targets), storage) for targets, storage in stored if not any(target in CLASSES for target in targets))
    said = main or next((storage for _, storage in matched if storage), None)
    title = f"compressed-tensors {said.title}" if said else "not quantized (compressed-tensors)"
    return Quantization(title, main, main, _skipped(settings), matched=matched)


CLASSES = frozenset({"Linear", "FusedMoE", "MoE"})
"""Targets that are kinds of layers, not names."""


def _targets(group: Mapping[str, Any]) -> list[str]:
    return [str(target) for target in group.get("targets") or ("Linear",)]


def _group(group: Mapping[str, Any], format_: str) -> Storage | None:
    """How a group stores its weights; None where it quantizes activations or the cache alone."""
    weights = group.get("weights")
    if not weights:
        return None
    bits, kind, strategy = int(weights.get("num_bits") or 8), str(weights.get("type") or "int"), str(weights.get("strategy") or "tensor")
    size = weights.get("group_size")
    active = group.get("input_activations") or {}
    static = 1 if active and active.get("dynamic") is False else 0
    if kind == "float" and bits == 4:
        return MXFP4 if size == 32 or format_.startswith("mxfp4") else NVFP4
    title = f"{'FP' if kind == 'float' else 'INT'}{bits} per {strategy}"
    if strategy == "channel":
        # packed weights keep 16-bit scales; quantized ones that a scaled multiplication reads keep float32
        return Storage(title, bits=bits, channel=True, scale_bytes=2 if format_ == "pack-quantized" else 4, scalars=static)
    if strategy == "block":
        block = weights.get("block_structure") or (128, 128)
        return Storage(title, bits=bits, block=(block[0], block[1]), scale_bytes=4)
    if strategy in ("group", "tensor_group"):
        zero = 0 if weights.get("symmetric", True) else bits
        orders = 1 if weights.get("actorder") in ("group", True) else 0
        mx = kind == "float" and size == 32
        return Storage(title, bits=bits, group=int(size or 128), scale_bytes=1 if mx else 2, zero_bits=zero, orders=orders)
    return Storage(title, bits=bits, scalars=1 + static)


def _quark(settings: Mapping[str, Any]) -> Quantization:
    """AMD Quark: one weight setting for all, others for what `layer_quant_config` names, none for what is excluded."""
    storage = _quark_storage((settings.get("global_quant_config") or {}).get("weight"))
    own = settings.get("layer_quant_config") or {}
    matched = tuple((Names.of([str(name)]), _quark_storage((said or {}).get("weight"))) for name, said in own.items())
    title = storage.title if storage else "some layers"
    return Quantization(f"Quark {title}", storage, storage, _skipped(settings), matched=matched)


def _quark_storage(weight: Any) -> Storage | None:
    if not weight:
        return None
    weight = weight[0] if isinstance(weight, list) else weight  # two stages, of which the first is stored
    dtype, scheme, size = str(weight.get("dtype") or ""), str(weight.get("qscheme") or "per_tensor"), weight.get("group_size")
    if dtype in ("fp4", "mx_fp4"):
        return MXFP4
    if dtype.startswith(("fp8", "int8")):
        return FP8_CHANNEL if scheme == "per_channel" else E4M3_TENSOR
    if dtype.startswith(("int4", "uint4")):
        return Storage(f"INT4, {size or 128} a group", bits=4, group=int(size or 128), zero_bits=4)
    raise UnknownQuantization(
        f"Quark weights of type {dtype or '(missing)'}: we do not know how many bytes they take; give --weights-bytes"
    )


def _torchao(settings: Mapping[str, Any]) -> Quantization:
    """TorchAO: the name of its default type says the bits; a table of modules may say others, or none."""
    told = settings.get("quant_type") or ""
    default = told.get("default") if isinstance(told, Mapping) else told
    inside = default.get("_data") if isinstance(default, Mapping) else None
    table = next((inside[key] for key in TABLES if isinstance(inside, Mapping) and isinstance(inside.get(key), Mapping)), None)
    if table is None:
        storage = _torchao_storage(default)
        return Quantization(f"TorchAO {storage.title}" if storage else "not quantized", storage, storage, _skipped(settings))
    storage = _torchao_storage(table.get("_default"))
    matched = tuple((Names.of([str(name)]), _torchao_storage(said)) for name, said in table.items() if name != "_default")
    return Quantization("TorchAO, by module", storage, storage, _skipped(settings), matched=matched)


TABLES = ("module_fqn_to_config", "fqn_to_config")
"""Under which TorchAO lists modules with a type of their own."""


def _torchao_storage(told: Any) -> Storage | None:
    if told is None:
        return None
    kind = str(told.get("_type") or "") if isinstance(told, Mapping) else str(told)
    found = next((storage for part, storage in TORCHAO.items() if part in kind.lower()), None)
    if found is None:
        raise UnknownQuantization(f"TorchAO type {kind or '(missing)'}: we do not know how many bytes it stores; give --weights-bytes")
    return found


def _mxfp8(settings: Mapping[str, Any]) -> Quantization:
    return Quantization(MXFP8.title, MXFP8, MXFP8, _skipped(settings))


def _hqq(settings: Mapping[str, Any]) -> Quantization:
    """HQQ: weights with a 16-bit scale and zero point a group. Source: vllm/model_executor/layers/quantization/hqq_marlin.py."""
    told = (settings.get("quant_config") or {}).get("weight_quant_params") or {}
    bits, group = int(told.get("nbits") or 4), int(told.get("group_size") or 64)
    storage = Storage(f"HQQ {bits} bits, {group} a group", bits=bits, group=group, zero_bits=16)
    return Quantization(storage.title, storage, storage, _skipped({**settings, "ignore": settings.get("skip_modules")}))


READERS: Mapping[str, Callable[[Mapping[str, Any]], Quantization]] = {
    "fp8": _fp8,
    "awq": _awq,
    "awq-marlin": _awq,
    "gptq": _gptq,
    "gptq-marlin": _gptq,
    "auto-round": _gptq,
    "intel/auto-round": _gptq,
    "auto-gptq": _gptq,
    "auto-awq": _awq,
    "inc": _gptq,
    "mxfp8": _mxfp8,
    "hqq": _hqq,
    "compressed-tensors": _compressed,
    "mxfp4": _mxfp4,
    "gpt-oss-mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "fbgemm-fp8": _fbgemm,
    "quark": _quark,
    "torchao": _torchao,
}
"""What reads which `quant_method`."""
