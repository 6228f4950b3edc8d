"""What vLLM itself refuses before it plans anything: numbers that do not divide, and combinations it has no class for."""

from collections.abc import Iterable

from bot.budget.tensor_bytes import padded_rows
from bot.domain.shape import ConvolutionWindow, Heads, Latent, Mamba1, Mamba2, ModelShape
from bot.usecases.sizing.question import Asked
from bot.usecases.sizing.values import Refused, flag


def refuse(asked: Asked) -> None:
    """Raises Refused(by="engine") with the first thing that the engine would refuse."""
    for sentence in _refusals(asked):
        raise Refused(sentence, by="engine")


def _refusals(asked: Asked) -> Iterable[str]:
    shape, tp, pp = asked.shape, asked.grid.tp, asked.grid.pp
    if shape.heads % tp:
        yield f"{shape.heads} attention heads are not divisible by tensor parallel size {tp}"
    yield from _cache_refusals(shape, tp)
    if (rows := padded_rows(shape.vocab)) % tp:
        yield f"{rows} rows of the vocabulary are not divisible by tensor parallel size {tp}"
    if pp > 1 and not shape.pipeline:
        yield f"the engine's class for {shape.architecture} does not support pipeline parallelism; pipeline parallel size {pp} must be 1"
    if pp > len(shape.layers):
        yield f"{len(shape.layers)} layers cannot be spread over {pp} pipeline stages"
    yield from _context_refusals(asked)
    yield from _length_refusals(asked)
    yield from _batch_refusals(asked)


def _cache_refusals(shape: ModelShape, tp: int) -> Iterable[str]:
    for cache in shape.caches:
        match cache:
            case Heads(kv_heads=heads) if heads % tp if heads >= tp else tp % heads:
                yield f"{heads} KV heads and tensor parallel size {tp}: one must divide the other"
            case ConvolutionWindow(heads=heads) if heads % tp:
                yield f"{heads} KV heads of a convolution are not divisible by tensor parallel size {tp}, and cannot be copied"
            case Mamba2(groups=groups) if groups % tp and groups != 1:
                yield f"{groups} state groups are not divisible by tensor parallel size {tp}; only a single group may be copied"
            case Mamba2(heads=heads) if heads % tp:
                yield f"{heads} state heads are not divisible by tensor parallel size {tp}"
            case Mamba1(inner=inner) if inner % tp:
                yield f"{inner} state channels are not divisible by tensor parallel size {tp}"


def _context_refusals(asked: Asked) -> Iterable[str]:
    grid, shape = asked.grid, asked.shape
    if grid.dcp == 1:
        return
    if grid.tp % grid.dcp:
        yield f"tensor parallel size {grid.tp} is not divisible by decode context parallel size {grid.dcp}"
    if any(isinstance(cache, Heads | Latent) and cache.window for cache in shape.caches):
        yield f"decode context parallel size {grid.dcp} does not work with a sliding window"
    for cache in shape.caches:
        if isinstance(cache, Heads) and grid.dcp > grid.tp // cache.kv_heads:
            copies = grid.tp // cache.kv_heads
            have = "1 copy" if copies == 1 else f"{copies} copies"
            yield f"{cache.kv_heads} KV heads have {have} on {grid.tp} ranks, but decode context parallel size is {grid.dcp}"


def _length_refusals(asked: Asked) -> Iterable[str]:
    length, limit = asked.settings.max_model_len, asked.shape.max_positions
    if limit is not None and length > limit:
        more = "a rope scaling in it, where the model's card gives one, allows more"
        yield f"max_model_len {length} is greater than the {limit} tokens that config.json allows; {more}"


def _batch_refusals(asked: Asked) -> Iterable[str]:
    """Source: vllm/config/scheduler.py verify_max_model_len, vllm/config/cache.py."""
    tokens, length, block = asked.max_num_batched_tokens, asked.settings.max_model_len, asked.arguments.get("block_size")
    if tokens < asked.max_num_seqs:
        yield f"max_num_batched_tokens {tokens} is smaller than max_num_seqs {asked.max_num_seqs}"
    if tokens < length and not flag(asked.arguments, "enable_chunked_prefill", True):
        yield f"max_num_batched_tokens {tokens} is smaller than max_model_len {length}, and prompts are not read in chunks"
    if block is not None and int(block) not in (1, 8) and int(block) % 16:
        yield f"block_size {block} is not a multiple of 16"
