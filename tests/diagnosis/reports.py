"""Prints a measured budget as each version of vLLM would have: one renderer a form, figures in GiB."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """Figures of one rank in GiB, as they were published. `estimate`: what the engine said graphs would take."""

    version: str
    form: str
    total: float
    utilization: float
    weights: float
    activation: float
    non_torch: float
    kv: float
    free: float | None = None
    estimate: float | None = None
    graphs: float | None = None
    consumed: float | None = None

    @property
    def requested(self) -> float:
        return self.total * self.utilization


def r2(value: float) -> str:
    """Python's round(x, 2) as a log shows it: 3.6, never 3.60."""
    return str(round(value, 2))


def v0(m: Measured) -> list[str]:
    stamp = "INFO 03-02 11:21:08 " + ("[worker.py:267]" if m.version >= "0.8" else "worker.py:267]")
    return [
        f"{stamp[:20]}{'[llm_engine.py:240]' if m.version >= '0.8' else 'llm_engine.py:240]'} Initializing {'a V0' if m.version >= '0.7.1' else 'an'} LLM engine (v{m.version}) with config: model='/models/m'",
        f"{stamp} Memory profiling takes 3.21 seconds",
        f"{stamp} the current vLLM instance can use total_gpu_memory ({m.total:.2f}GiB) x gpu_memory_utilization ({m.utilization:.2f}) = {m.requested:.2f}GiB",
        f"{stamp} model weights take {m.weights:.2f}GiB; non_torch_memory takes {m.non_torch:.2f}GiB; PyTorch activation peak memory takes {m.activation:.2f}GiB; the rest of the memory reserved for KV Cache is {m.kv:.2f}GiB.",
    ]


def _v1(m: Measured, usage: str) -> list[str]:
    tag = "(EngineCore_DP0 pid=310)" if m.version < "0.18" else "(EngineCore pid=310)"
    runner = [f"{tag} INFO 08-06 09:12:33 [gpu_worker.py:378] Using V2 Model Runner"] if m.form.endswith("v2") else []
    estimate = (
        [f"{tag} INFO 08-06 09:13:02 [gpu_model_runner.py:6512] Estimated CUDA graph memory: {m.estimate:.2f} GiB total"]
        if m.estimate is not None
        else []
    )
    kv = r2(m.kv) if m.version >= "0.14" else f"{m.kv:.2f}"
    device = " cuda:0" if m.version >= "0.14" else ""
    free = m.free if m.free is not None else m.total - 0.5
    return [
        f"{tag} INFO 08-06 09:12:31 [core.py:100] Initializing a V1 LLM engine (v{m.version}) with config: model='/models/m', max_seq_len=32768",
        *runner,
        *estimate,
        f"{tag} INFO 08-06 09:13:10 [gpu_worker.py:560] Available KV cache memory: {kv} GiB",
        f"{tag} INFO 08-06 09:13:40 [gpu_worker.py:870] Free memory on device{device} ({r2(free)}/{r2(m.total)} GiB) on startup. "
        f"Desired GPU memory utilization is ({m.utilization}, {r2(m.requested)} GiB). {usage}, and {r2(m.graphs or 0.0)} GiB for CUDAGraph memory. "
        f"Replace gpu_memory_utilization config with `--kv-cache-memory={int(m.kv * 2**30) - 150 * 2**20}` to fit into requested memory, or "
        f"`--kv-cache-memory={int((m.kv + free - m.requested) * 2**30)}` to fully utilize gpu memory. "
        f"Current kv cache memory in use is {f'{int(m.kv * 2**30)} bytes' if m.version < '0.11' else r2(m.kv) + ' GiB'}.",
    ]


def by_weight(m: Measured) -> list[str]:
    return _v1(
        m,
        f"Actual usage is {r2(m.weights)} GiB for weight, {r2(m.activation)} GiB for peak activation, {r2(m.non_torch)} GiB for non-torch memory",
    )


def by_consumed(m: Measured) -> list[str]:
    consumed = m.consumed if m.consumed is not None else m.weights + m.non_torch
    return _v1(
        m, f"Actual usage is {r2(consumed)} GiB for consumed memory (weights + non-torch), {r2(m.activation)} GiB for peak activation"
    )


def debug(m: Measured) -> list[str]:
    """The debug lines of 0.27 and later."""
    consumed = m.weights + m.non_torch
    return [
        f"(EngineCore pid=310) INFO 09-02 09:12:31 [core.py:128] Initializing a V1 LLM engine (v{m.version}) with config: model='/models/m'",
        f"(EngineCore pid=310) DEBUG 09-02 09:12:35 [gpu_worker.py:301] worker init memory snapshot: torch_peak=0.0GiB, torch_allocated=0.0GiB, free_memory={r2(m.free or 0)}GiB, total_memory={r2(m.total)}GiB, cuda_memory=0.52GiB",
        f"(EngineCore pid=310) DEBUG 09-02 09:12:35 [gpu_worker.py:302] worker requested memory: {r2(m.requested)}GiB",
        f"(EngineCore pid=310) DEBUG 09-02 09:13:10 [gpu_worker.py:590] Initial free memory: {r2(m.free or 0)} GiB; Requested memory: {m.utilization:f} (util), {r2(m.requested)} GiB",
        f"(EngineCore pid=310) DEBUG 09-02 09:13:10 [gpu_worker.py:597] Memory profiling takes 2.11 seconds. Total non KV cache memory: {r2(consumed + m.activation)}GiB; torch peak memory increase: {r2(m.activation)}GiB; total consumed (from mem_get_info): {r2(consumed)}GiB; weights memory: {r2(m.weights)}GiB.",
        f"(EngineCore pid=310) INFO 09-02 09:13:10 [gpu_worker.py:590] Available KV cache memory: {r2(m.kv)} GiB",
    ]


FORMS: dict[str, Callable[[Measured], list[str]]] = {
    "v0": v0,
    "weight": by_weight,
    "weight-v2": by_weight,
    "consumed": by_consumed,
    "consumed-v2": by_consumed,
    "debug": debug,
}


def printed(m: Measured) -> str:
    """The report as that version prints it."""
    return "\n".join(FORMS[m.form](m))
