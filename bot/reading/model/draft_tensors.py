"""What drafts tokens for a model, as tensors: its own layers for further tokens, an EAGLE or DFlash head, Medusa's heads."""

from collections.abc import Callable, Mapping

from bot.domain.tensors import ModelTensors, Part, Stretch, Table
from bot.reading.model.numbers import MissingField
from bot.reading.model.tensor_attention import grouped, head_dim
from bot.reading.model.tensor_feeds import feed_forward
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_latent import latent
from bot.reading.model.tensor_ngrams import stream_mixer
from bot.reading.model.tensor_parts import F32, Modules, column, copied, row, vector
from bot.reading.model.tensors import dtype_bytes, layer

MOST_HEADS = 64
"""More than any Medusa has."""


def own_tensors(f: Fields, method: str, count: int, dtype: str, *, own_embedding: bool) -> ModelTensors:
    """`count` layers of the model's own for further tokens: a layer of the model, what joins hidden state and embedding, and norms.

    Embedding and output table are the model's own, but for the embedding where the model has that on another stage.
    Source: vllm/model_executor/models/deepseek_mtp.py, qwen3_next_mtp.py and those beside them; llm_base_proposer.py for what is shared.
    """
    said = f.rule(method)
    if not isinstance(said, Mapping):
        raise MissingField("no [weights] in rules/models says how this model's layers for further tokens are made")
    if said.get("experts"):
        f = f.changed(n_routed_experts=f.raw(str(said["experts"]), f.find("experts")))
    hidden = f.find("hidden")
    mixer, feed = str(said["mixer"]), str(said.get("feed", "dense"))
    feed = "dense" if feed == "experts" and f.find("experts", 0) <= 1 else feed
    body = layer(f, mixer, feed, mixer == "latent" and bool(f.raw("index_n_heads")))
    each, ends = JOINS[str(said.get("projection", "copied"))](f, hidden, count)
    one: Modules = (*body, *each, vector(int(said.get("norms", 3)) * hidden))
    if own_embedding:
        ends = (*ends, Table("embed_tokens", f.find("vocab"), hidden))
    stem = str(said.get("name", "layers."))
    first = f.find("layers", 0) if stem == "layers." else 0
    return ModelTensors((one,) * count, (Stretch("first", ends),), dtype_bytes(dtype), first=first, stem=stem)


Join = Callable[[Fields, int, int], tuple[Modules, Modules]]
"""From hidden size and number of layers: (what each layer has, what all of them have once)."""


def _two_matrices(f: Fields, hidden: int, _: int) -> tuple[Modules, Modules]:
    """DeepSeek V4: hidden state and embedding each have a matrix; streams are mixed. Source: vllm/models/deepseek_v4/nvidia/mtp.py."""
    return (copied("e_proj", hidden, hidden), copied("h_proj", hidden, hidden), *_mixed_streams(f, hidden)), ()


def _into_streams(f: Fields, hidden: int, _: int) -> tuple[Modules, Modules]:
    """Qwen 4: both matrices dealt, norms of embedding and streams, one hidden state made of all. Source: vllm/models/qwen4_exp."""
    dealt = tuple(column((name,), hidden, Part(hidden)) for name in ("fc_embedding", "fc_hidden"))
    return (), (*dealt, vector((1 + int(f.raw("hc_count"))) * hidden), *stream_mixer(f))


def _states(f: Fields, hidden: int, count: int) -> tuple[Modules, Modules]:
    """DSpark of DeepSeek V4: states of some layers come in through one matrix, every layer's keys of them through a second; a head corrects
    each token by the one before. Source: vllm/models/deepseek_v4/nvidia/dspark.py.
    """
    seen = copied("main_proj", hidden * len(f.raw("dspark_target_layer_ids")), hidden)
    keys = copied("context_wkv_proj", hidden, count * f.number("head_dim"))
    return (), (seen, keys, *_mixed_streams(f, hidden), vector(2 * hidden), *_corrections(f, "dspark_markov_rank", sure=True))


def _few_states(f: Fields, hidden: int, _: int) -> tuple[Modules, Modules]:
    """DSpark of DeepSeek V4.1: the same without keys of its own and without a mixing of streams. Source: vllm/models/deepseek_v41."""
    seen = copied("main_proj", hidden * len(f.raw("dspark_target_layer_ids")), hidden)
    return (), (seen, vector(2 * hidden), *_corrections(f, "dspark_markov_rank", sure=True))


def _mixed_streams(f: Fields, hidden: int) -> Modules:
    streams = int(f.raw("hc_mult", 4))
    return (vector(streams * streams * hidden + streams + 1, F32),)


def _corrections(f: Fields, key: str, *, sure: bool) -> Modules:
    """DSpark's two narrow tables on every rank, and what says how sure the draft is. Source: vllm qwen3_dspark.py."""
    rank, vocab = f.number(key), f.find("vocab")
    tables = (vector(rank * (vocab + (int(f.raw("draft_vocab_size", 0)) or vocab))),)
    return (*tables, vector(f.find("hidden") + rank + 1, F32)) if f.raw("enable_confidence_head", sure) else tables


JOINS: Mapping[str, Join] = {
    "copied": lambda f, hidden, count: ((copied("eh_proj", 2 * hidden, hidden, quantized=False),), ()),
    "dealt": lambda f, hidden, count: ((), (column(("fc",), 2 * hidden, Part(hidden)),)),
    "two": _two_matrices,
    "streams": _into_streams,
    "states": _states,
    "few-states": _few_states,
}
"""What `projection` in a family's `mtp` or `dspark` may say."""


def draft_tensors(f: Fields, dtype: str, *, own_embedding: bool) -> ModelTensors:
    """A model that only drafts, from its own config.json."""
    layers, ends = DRAFTS[str(f.rule("draft"))](f)
    if own_embedding:
        ends = (*ends, Table("embed_tokens", f.find("vocab"), f.find("hidden")))
    return ModelTensors(layers, (Stretch("first", ends),), dtype_bytes(dtype))


Draft = tuple[tuple[Modules, ...], Modules]
"""(its layers, what stands beside them)."""


def _eagle(f: Fields) -> Draft:
    """EAGLE: layers of the model's kind, the first without its input norm, behind one matrix. Source: vllm llama_eagle.py."""
    hidden, count = f.find("hidden"), plausible_layers(f.find("layers", 1))
    one: Modules = (*grouped(f), *feed_forward(f))
    layers = tuple((*one, vector(hidden * (1 if number == 0 else 2))) for number in range(count))
    return layers, (copied("fc", 2 * hidden, hidden),)


def _eagle3(f: Fields) -> Draft:
    """EAGLE 3: the first layer reads embedding and hidden state side by side; some of the model's layers come in through one matrix,
    and a smaller vocabulary goes out. Source: vllm llama_eagle3.py, qwen3_eagle3.py, deepseek_eagle3.py.
    """
    hidden, count = f.find("hidden"), plausible_layers(f.find("layers", 1))
    mixer = latent if f.raw("kv_lora_rank") else lambda f, inputs: grouped(f, inputs=inputs)
    layers = tuple((*mixer(f, 2 * hidden if number == 0 else 0), *feed_forward(f), vector(3 * hidden)) for number in range(count))
    rows, listed = int(f.raw("draft_vocab_size", 0)) or f.find("vocab"), _seen_layers(f)
    mapped = (vector(rows, 8),) if rows != f.find("vocab") else ()
    return layers, (copied("fc", _seen_width(f) * (listed or 3), hidden), vector(hidden), Table("lm_head", rows, hidden), *mapped)


def _dflash(f: Fields) -> Draft:
    """DFlash: a few layers that draft a whole block, behind one matrix. Source: vllm qwen3_dflash.py."""
    hidden, count = f.find("hidden"), plausible_layers(f.find("layers"))
    one: Modules = (*grouped(f), *feed_forward(f), vector(2 * hidden))
    return (one,) * count, (copied("fc", _seen_width(f) * (_seen_layers(f) or count), hidden), vector(3 * hidden))


def _dspark(f: Fields) -> Draft:
    """DSpark: DFlash with corrections, and an output table where it has fewer tokens than the model. Source: vllm qwen3_dspark.py."""
    layers, ends = _dflash(f)
    rows = int(f.raw("draft_vocab_size", 0)) or f.find("vocab")
    narrowed = (Table("lm_head", rows, f.find("hidden")), vector(rows, 8)) if rows < f.find("vocab") else ()
    return layers, (*ends, *narrowed, *_corrections(f, "markov_rank", sure=False))


def _assistant(f: Fields) -> Draft:
    """Gemma 4's assistant: layers that read the model's cache, a matrix from its states and one back. Source: vllm gemma4_mtp.py."""
    hidden, seen, vocab = f.find("hidden"), f.number("backbone_hidden_size"), f.find("vocab")
    wide = int(f.raw("global_head_dim", 0)) or head_dim(f)
    sizes = [wide if kind == "full_attention" else head_dim(f) for kind in f.raw("layer_types") or ["sliding_attention"] * f.find("layers")]
    layers = tuple((*grouped(f, dim=dim, shared_cache=True), *feed_forward(f), vector(4 * hidden)) for dim in sizes)
    ends = (Table("embed_tokens", vocab, hidden), column(("pre",), 2 * seen, Part(hidden)), row("post", Part(hidden), seen), vector(hidden))
    listed = (vector(hidden * f.number("num_centroids")), vector(vocab, 8)) if f.raw("use_ordered_embeddings") else ()
    return layers, (*ends, *listed)


def _medusa(f: Fields) -> Draft:
    """Medusa: residual blocks and an output table for each head. Source: vllm medusa.py (until 0.2x)."""
    hidden, heads = f.find("hidden"), min(f.number("num_heads"), MOST_HEADS)
    shared = bool(f.raw("original_lm_head"))
    rows = (int(f.raw("truncated_vocab_size", 0)) if shared else 0) or f.find("vocab")
    block: Modules = (vector(hidden * hidden),) * plausible_layers(f.find("layers", 1))
    return (), (*block * heads, *(Table("lm_head", rows, hidden),) * (1 if shared else heads))


def _seen_layers(f: Fields) -> int:
    """Layers of the model whose states the draft reads; 0 where the file does not say."""
    for key in ("num_aux_hidden_states", "num_aux_layers"):
        if f.raw(key):
            return int(f.raw(key))
    return next((len(f.raw(key)) for key in _LISTS if isinstance(f.raw(key), list)), 0)


def _seen_width(f: Fields) -> int:
    return int(f.raw("target_hidden_size", 0)) or f.find("hidden")


_LISTS = (
    "eagle_aux_hidden_state_layer_ids",
    "eagle_config.eagle_aux_hidden_state_layer_ids",
    "dflash_config.target_layer_ids",
    "target_layer_ids",
)

DRAFTS = {"eagle": _eagle, "eagle3": _eagle3, "dflash": _dflash, "dspark": _dspark, "medusa": _medusa, "assistant": _assistant}
"""What `draft` in a family's [weights] may say."""
