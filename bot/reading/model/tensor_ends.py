"""What stands before, after and beside the layers: embeddings, positions, output table."""

from collections.abc import Mapping
from typing import Any

from bot.domain.tensors import Module, Part, Plain, Stretch, Table, whole
from bot.reading.model.tensor_attention import head_dim
from bot.reading.model.tensor_feeds import banks
from bot.reading.model.tensor_fields import Fields, plausible_layers
from bot.reading.model.tensor_latent import shared_sources
from bot.reading.model.tensor_ngrams import engrams, ngram_layers, ngram_tables, stream_mixer
from bot.reading.model.tensor_parts import column, copied, vector
from bot.reading.model.tensor_shared import shared_blocks
from bot.reading.model.towers import tower


def ends(f: Fields) -> list[Stretch]:
    """What stands before and after the layers: embeddings, positions, final norm, output table, towers."""
    hidden, vocab = f.find("hidden"), f.find("vocab")
    width = int(f.raw("word_embed_proj_dim", 0)) or hidden
    rows = vocab + int(f.rule("embedding_extra", 0))
    table = Table("embed_tokens", rows, width, "whole" if f.rule("embedding_whole", False) else "split")
    headless = bool(f.rule("headless", False))
    tied = not headless and bool(f.raw("tie_word_embeddings", f.rule("tied", False)))
    everywhere = bool(f.rule("embeddings_everywhere", False))
    final = vector(hidden * (2 if f.rule("norm_bias", False) else 1) * int(f.rule("final_norms", 1)))
    stretches = [
        Stretch("every" if everywhere else "first", (table, *before(f))),
        Stretch("last", (final, *after(f))),
        Stretch("every", (*rotary(f), *banks(f))),
        Stretch(f.rule("tower_stages", "every"), tuple(tower(f)), encoder=True),
    ]
    if not (tied or headless):
        stretches.append(Stretch("every" if everywhere else "last", (Table("lm_head", vocab, width, head=True),)))
    if (tied or f.rule("embedding_last", False)) and not everywhere:
        stretches.append(Stretch("last of several", (table,)))
    return stretches


def before(f: Fields) -> list[Module]:
    """Learned positions, token types, per-layer embeddings, residual streams: whatever else the first stage holds."""
    hidden = f.find("hidden")
    made: list[Module] = list(shared_blocks(f)) if f.raw("num_mem_blocks") else []
    narrow = int(f.raw("word_embed_proj_dim", 0)) or hidden
    if narrow != hidden:
        made += [copied("project_in", narrow, hidden), copied("project_out", hidden, narrow)]
    if f.rule("positions", "rope") == "learned":
        made.append(vector((f.find("positions") + int(f.rule("positions_extra", 0))) * hidden))
    if f.raw("type_vocab_size"):
        made.append(vector(f.number("type_vocab_size") * hidden))
    width = int(f.raw("hidden_size_per_layer_input", 0))
    if width and "per-layer-inputs" in f.rule("extras", ()):
        every = width * f.find("layers")
        made.append(Table("embed_tokens_per_layer", int(f.raw("vocab_size_per_layer_input", f.find("vocab"))), every))
        made += [column(("per_layer_model_projection",), hidden, Part(every)), vector(width)]
    if f.raw("kv_source_layer_ids"):
        made += shared_sources(f)
    if f.raw("engram_layer_ids"):
        made += engrams(f)
    if f.raw("ple_layer_ids"):
        made += ngram_layers(f)
    if f.raw("ngram_vocab_size_ratio"):
        made += ngram_tables(f)
    if "laurel" in f.rule("extras", ()):
        made += [column(("altup_projections",), hidden, Part(hidden))] * (
            2 * (plausible_layers(int(f.raw("altup_num_inputs", 4)), "residual streams") - 1)
        )
    return made


def after(f: Fields) -> list[Module]:
    """What else the last stage holds: the mixing of residual streams into one."""
    if "gated-streams" in f.rule("extras", ()):
        return list(stream_mixer(f))
    if "hyper-connections" not in f.rule("extras", ()):
        return []
    streams = int(f.raw("hc_mult", 4))
    return [vector(streams * streams * f.find("hidden") + streams + 1, 4)]


def rotary(f: Fields) -> list[Plain]:
    """The tables of rotary positions, each shared by all layers of a stage that turn alike."""
    if f.rule("positions", "rope") != "rope" or not f.rule("rotary_table", True):
        return []
    whole_heads = bool(f.rule("rotary_whole", False))
    told = [f.number(key) for key in f.rule("rotary_dims", [])]
    if told:
        dims = [dim if whole_heads else int(dim * partial(f)) for dim in told]
    else:
        dims = [int(f.raw("qk_rope_head_dim") or f.raw("rotary_dim") or head_dim(f) * partial(f))]
    rows = [rotary_rows(f, scaling) for scaling in rotary_scalings(f)]
    return [
        Plain((whole(rows[min(i, len(rows) - 1)]), whole(dim)), f.rule("rotary_bytes"), "rotary positions") for i, dim in enumerate(dims)
    ]


def rotary_scalings(f: Fields) -> list[Mapping[str, Any]]:
    """How positions are stretched, a table each: newer files say it by kind of layer; in older ones only layers without a window are."""
    told = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    by_kind = [inner for inner in told.values() if isinstance(inner, Mapping)]
    if by_kind:
        return [told.get("full_attention") or by_kind[0], told.get("sliding_attention") or by_kind[-1]]
    return [told, {}] if len(f.rule("rotary_dims", [])) > 1 else [told]


def rotary_rows(f: Fields, scaling: Mapping[str, Any]) -> int:
    """Positions in a table: the model's own limit, stretched; four times for sections of several axes in one table.

    YaRN stretches the original limit, `linear` and `dynamic` this one; `longrope` keeps a table for each.
    Source: vLLM layers/rotary_embedding.
    """
    positions = int(f.raw(f.rule("positions_key", ""), 0)) or f.find("positions", 2048)
    original = int(scaling.get("original_max_position_embeddings") or f.raw("original_max_position_embeddings") or positions)
    kind, factor = scaling.get("rope_type") or scaling.get("type"), float(scaling.get("factor") or 1)
    if kind == "yarn":
        positions = int(original * factor)
    elif kind in ("linear", "dynamic") and not scaling.get("alpha"):
        positions = int(positions * factor)
    elif kind in ("longrope", "su"):
        positions += original
    if scaling.get("mrope_section"):
        return positions * int(f.rule("rotary_interleaved_times", 1) if scaling.get("mrope_interleaved") else 4)
    return positions


def partial(f: Fields) -> float:
    """The share of a head that is turned."""
    scaling = f.raw("rope_scaling") or f.raw("rope_parameters") or {}
    told = f.raw("partial_rotary_factor", scaling.get("partial_rotary_factor", f.raw("rotary_pct")))
    return float(f.rule("partial", 1.0) if told is None else told)
