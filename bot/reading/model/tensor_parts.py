"""The pieces that layers are described with: matrices dealt by column or row, copied ones, vectors."""

from bot.domain.tensors import Linear, Module, Part, Plain, whole

Modules = tuple[Module, ...]


F32 = 4


def vector(elements: int, bytes_: int | None = None, name: str = "") -> Plain:
    """A norm or bias that every rank has."""
    return Plain((whole(elements),), bytes_, name)


def column(names: tuple[str, ...], inputs: int, *outputs: Part, bias: bool = False, quantized: bool = True, fused: str = "") -> Linear:
    """A matrix whose outputs are dealt over the ranks."""
    return Linear(names, whole(inputs), outputs, bias, quantized, fused)


def row(name: str, inputs: Part, outputs: int, bias: bool = False) -> Linear:
    """A matrix whose inputs are dealt over the ranks."""
    return Linear((name,), inputs, (whole(outputs),), bias)


def copied(name: str, inputs: int, outputs: int, *, bias: bool = False, quantized: bool = True) -> Linear:
    """A matrix that every rank has in full."""
    return Linear((name,), whole(inputs), (whole(outputs),), bias, quantized)


def undealt(module: Linear) -> Linear:
    """The same matrix in full on each rank."""
    inputs, outputs = whole(module.inputs.units * module.inputs.size), tuple(whole(o.units * o.size) for o in module.outputs)
    return Linear(module.names, inputs, outputs, module.bias, module.quantized)
