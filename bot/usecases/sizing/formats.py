"""How weights are stored, in words: `eager`, `fp8`, `awq`, `4bit`; and switches that a word says by itself."""

import re

from bot.usecases.sizing.reader import Reader

QUANTIZATIONS = frozenset(["awq", "gptq", "nvfp4", "mxfp4", "int8", "int4", "w8a8", "w4a16", "bitsandbytes", "bnb", "compressed-tensors"])
ALONE = {
    "eager": ("enforce_eager", True),
    "ep": ("enable_expert_parallel", True),
    "expert parallel": ("enable_expert_parallel", True),
    "text only": ("language_model_only", True),
    "bf16": ("dtype", "bfloat16"),
    "fp16": ("dtype", "float16"),
    "fp8": ("quantization", "fp8"),
}
"""Words that say an argument and its value by themselves; those of QUANTIZATIONS are values of one."""
ANY_FORMAT = "|".join(sorted(map(re.escape, (*QUANTIZATIONS, "fp8")), key=len, reverse=True))
_IN_FULL = {"bnb": "bitsandbytes"}
_COMMONEST = {"4": "awq", "8": "fp8"}
_OF_BITS = {
    "4": ("awq", "awq-int4", "gptq", "gptq-int4", "nvfp4", "fp4", "mxfp4", "int4", "w4a16", "quantized.w4a16", "bitsandbytes"),
    "8": ("gptq-int8", "fp8", "fp8-dynamic", "int8", "w8a8", "quantized.w8a8", "bitsandbytes"),
}


def read_formats(reader: Reader) -> None:
    """Switches, formats, and numbers of bits, which name no format by themselves."""
    for words in sorted(ALONE, key=len, reverse=True):
        for _ in reader.take(words.replace(" ", "[ -]")):
            reader.put(*ALONE[words])
    for match in reader.take(ANY_FORMAT):
        reader.put("quantization", _IN_FULL.get(match[0].lower(), match[0].lower()))
    for match in reader.take(r"w?(?P<bits>[48])[ -]?bits?|q(?P<q>[48])(?:_[0k](?:_[sml])?)?"):
        _bits(reader, match[0], match["bits"] or match["q"])


def _bits(reader: Reader, said: str, bits: str) -> None:
    """`4bit` names no format: one that is named beside it is meant, else the commonest checkpoint of so many bits is taken."""
    model = reader.models.find(str(reader.question.get("model") or ""))
    named = reader.question.get("quantization") or (model.stored if model else "")
    if not named and model and "quantization_config" in model.config:
        return  # it is stored so, and in no other way
    if model and (model.stored, bits) == ("gptq", "8"):
        reader.question["model"] = f"{reader.question['model']}-int8"
    elif not named:
        reader.put("quantization", _COMMONEST[bits])
        reader.corrections.append(f"{said!r} names no format: {_COMMONEST[bits].upper()} is taken, the commonest of {bits} bits")
    elif (named, bits) == ("gptq", "8"):
        reader.question["quantization"] = "gptq-int8"
    elif named not in _OF_BITS[bits]:
        reader.corrections.append(f"{said!r} is left out: {named} has not {bits} bits")
