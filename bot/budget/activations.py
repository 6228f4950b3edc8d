"""The activation peak that profiling measures: one forward pass of a full batch, or drawing from its logits, whichever is larger."""

from bot.domain.overheads import Estimate, ForwardShape, Measured, OverheadFigures, Run
from bot.domain.size import GIB

CONTEXT_TOKENS = 65_536  # at most so many cached tokens are projected up at once (vLLM mla_attention.py workspace)
CHUNKED_FROM, CHUNK = 32_768, 2_048  # the first engine cut prompts of longer models into chunks (vllm/engine/arg_utils.py)
FEW = 16  # sequences that a start may have been limited to when the question gives no limit
_SLACK = 0.15  # GiB: caches of kernels and small buffers that no formula counts


def activation_peak(shape: ForwardShape, run: Run, figures: OverheadFigures) -> Estimate:
    """Bytes on the rank that needs most. A default that the question did not give widens the range: real starts differ there.

    Source of the formulas: the order of vLLM's profile run (encoder, forward, sampler; GPUModelRunner.profile_run), fitted on public logs.
    """
    tokens, sequences = _tokens(run, figures), _sequences(run, figures)
    low, typical, high = (
        max(
            forward_bytes(shape, tokens[i], run.tp) * figures.forward.span[i]
            + context_bytes(shape, run) * figures.context.span[i]
            + encoder_bytes(shape, run) * figures.encoder.span[i],
            sequences[i] * shape.vocab * figures.sampler.span[i],
        )
        for i in range(3)
    )
    return Estimate(
        "activations", round(low), round(typical), round(high + _SLACK * GIB), _basis(shape, run, figures, tokens[1], sequences[1])
    )


def forward_bytes(shape: ForwardShape, tokens: int, tp: int) -> int:
    """Live values of the widest layer: residual streams twice, input, output; gate, up and product of the MLP or the experts visited."""
    dense = 3 * shape.intermediate / tp
    routed = shape.experts_per_token * (shape.hidden + 3 * shape.expert_intermediate / tp)
    return round(tokens * shape.value_bytes * ((2 + 2 * shape.streams) * shape.hidden + max(dense, routed)))


def context_bytes(shape: ForwardShape, run: Run) -> int:
    """Up-projected latents of the cached part of a chunked prompt; never split below one rank's heads."""
    return min(8 * run.max_model_len, CONTEXT_TOKENS) * shape.context_bytes // run.tp


def encoder_bytes(shape: ForwardShape, run: Run) -> int:
    """Live values of the vision tower on the largest picture; its MLP is split over tensor parallel ranks."""
    if shape.vision is None or not run.encodes:
        return 0
    hidden, intermediate, patches = shape.vision
    return round(patches * shape.value_bytes * (3 * hidden + 2.5 * intermediate / run.tp))


def _tokens(run: Run, figures: OverheadFigures) -> tuple[int, int, int]:
    if run.tokens_given:
        return run.tokens, run.tokens, run.tokens
    if figures.profiled == "prompt":
        usual = max(run.max_model_len, CHUNK) if run.max_model_len <= CHUNKED_FROM else CHUNK
        return min(usual, CHUNK), usual, usual
    return min(run.tokens, CHUNK), run.tokens, max(run.tokens, 8_192)


def _sequences(run: Run, figures: OverheadFigures) -> tuple[int, int, int]:
    if figures.profiled == "prompt" and run.max_model_len > CHUNKED_FROM:
        return 0, 0, run.sequences  # a chunk in the middle of a prompt draws nothing
    rows = min(run.sequences, run.tokens)
    return (rows if run.sequences_given or run.tokens_given else min(rows, FEW)), rows, rows


def _basis(shape: ForwardShape, run: Run, figures: OverheadFigures, tokens: int, sequences: int) -> str:
    drawn = f"{sequences:,} sequences × {shape.vocab:,} vocabulary × {_span(figures.sampler)} B"
    wide = "3 × intermediate ÷ TP" if not shape.experts_per_token else "experts per token × (hidden + 3 × intermediate ÷ TP)"
    forward = f"{tokens:,} tokens × ({2 + 2 * shape.streams} × hidden + {wide}) × {shape.value_bytes} B × {_span(figures.forward)}"
    beside = (("a picture's encoding", encoder_bytes(shape, run)), ("latents projected up", shape.context_bytes))
    parts = [forward, *(name for name, size in beside if size)]
    rows = f"{figures.sampler.rows} and {figures.forward.rows} measured starts"
    return f"the larger of {' + '.join(parts)}, and of {drawn}; fitted on {rows}; {figures.sampler.source}"


def _span(measured: Measured) -> str:
    return f"{measured.span[0]:g}…{measured.span[2]:g}"
