"""Figures beside their names and without: `tp4`, `64 users`, `100k input 4k output`, `fp8 kv`, `46GB pool`, `128k`."""

from bot.usecases.sizing.arguments import BY_NAME, value_of
from bot.usecases.sizing.flags import put_text
from bot.usecases.sizing.reader import Reader

KV_WORD = r"kv(?:[ -]?cache)?"
KV_TYPE = r"fp8(?:_e4m3|_e5m2|_ds_mla)?|bf16|bfloat16|fp16|float16|nvfp4|(?:int8|fp8|int4)_per_token_head|turboquant_\w+"
_SHORT_KV = {"bf16": "bfloat16", "fp16": "float16"}
_NUMBER = r"\d[\d,_]*(?:\.\d+)?"

_PAIRS = {
    "tensor_parallel_size": r"tp|tensor[ -]parallel(?:[ -]size)?",
    "pipeline_parallel_size": r"pp|pipeline[ -]parallel(?:[ -]size)?",
    "data_parallel_size": r"dp|data[ -]parallel(?:[ -]size)?",
    "decode_context_parallel_size": r"dcp",
    "max_model_len": r"(?:max(?:imum)?[ -])?(?:model[ -])?(?:len|length|ctx|context)(?:[ -]?(?:length|len|window))?",
    "max_num_seqs": r"(?:max[ -])?(?:num[ -])?(?:seqs?|sequences|(?:concurrent )?(?:requests|users|clients|streams|sessions)|"
    r"concurren(?:cy|t)|in parallel|at once|batch[ -]size)",
    "max_num_batched_tokens": r"(?:max[ -])?(?:num[ -])?batched(?:[ -]tokens)?",
    "gpu_memory_utilization": r"(?:gpu[ -]memory[ -])?util(?:i[sz]ation)?",
    "block_size": r"block(?:[ -]size)?",
}
_VALUES = {
    "max_model_len": rf"{_NUMBER}[km]?|auto",
    "max_num_batched_tokens": rf"{_NUMBER}[km]?",
    "gpu_memory_utilization": r"\d?\.\d+|[01]|\d{2,3} ?%",
}
_IN = r"(?:tokens? )?(?:of )?(?:input|in|prompts?|prefill)"
_OUT = r"(?:tokens? )?(?:of )?(?:output|out|answers?|completions?|generat(?:ed|ion)|decode)"


def read_rates(reader: Reader) -> None:
    """30 tok/s per user, 2 requests per second, 5 rps: how fast is no question of memory."""
    what = r"(?:output |input )?(?:tok(?:en)?s?|t|req(?:uest)?s?|prompts?|queries|answers?)"
    for match in reader.take(
        rf"(?:{_NUMBER}[km]? ?)?(?:{what}(?: ?/ ?| per )(?:s|secs?|seconds?|mins?|minutes?|h|hours?|day)|[rqt]ps)(?:(?: ?/ ?| per )user)?"
    ):
        reader.corrections.append(f"{match[0]!r} is left out: how fast it answers is no question of memory")


def read_lengths(reader: Reader) -> None:
    """`100k input, 4k output`, `prompt 8k + completion 1k`: a context holds both together."""
    number, between = rf"{_NUMBER}[km]?", r"[ ,;+/&]*(?:and |plus )?"
    behind = rf"(?P<a>{number}) ?{_IN}{between}(?P<b>{number}) ?{_OUT}"
    before = rf"{_IN}[ =:]+(?P<c>{number}){between}{_OUT}[ =:]+(?P<d>{number})"
    for match in reader.take(rf"{behind}|{before}"):
        said = [match["a"] or match["c"], match["b"] or match["d"]]
        together = sum(int(value_of(BY_NAME["max_model_len"], one)) for one in said)
        reader.put("max_model_len", together)
        reader.corrections.append(f"{' + '.join(said)}: a context of {together:,} holds prompt and answer together")


def read_versions(reader: Reader) -> None:
    """vllm 0.11.0, v0.9, 0.25.0."""
    for match in reader.take(r"(?:vllm|version)[ -]?v?(\d+\.\d+(?:\.\d+)?(?:\w+)?)|v?(\d+\.\d+\.\d+)(?:\w*)|v(0\.\d+)"):
        reader.add("engine_version", match[1] or match[2] or match[3])


def read_pairs(reader: Reader) -> None:
    """tp4, tp 4, 128k context, 64 seqs, util 0.95; the name before or after its figure."""
    for name, words in _PAIRS.items():
        value = _VALUES.get(name, r"\d+")
        for match in reader.take(rf"(?:{words})[ =:-]*(?:of )?(?P<after>{value})|(?P<before>{value})[ -]?(?:{words})"):
            put_text(reader, BY_NAME[name], (match["after"] or match["before"]).replace(" ", ""))


def read_kv_types(reader: Reader) -> None:
    """fp8 kv, kv cache dtype: bf16."""
    for match in reader.take(rf"(?P<before>{KV_TYPE})[ -]{KV_WORD}|{KV_WORD}(?:[ -]dtype)?[ =:-]+(?P<after>{KV_TYPE})"):
        kind = (match["before"] or match["after"]).lower()
        reader.put("kv_cache_dtype", _SHORT_KV.get(kind, kind))


def read_amounts(reader: Reader) -> None:
    """46GB pool, 70GB checkpoint; then figures without a name: 128k or 131072 is a length, 0.95 or 95% a utilization."""
    size, names = r"\d+(?:\.\d+)? ?(?:GB|GiB|G|MB|MiB)", "pool|kv(?:[ -]?cache)?|weights|checkpoint|other"
    for match in reader.take(rf"(?P<before>{size}) (?:of )?(?P<kind>{names})|(?P<first>{names})[ =:]+(?:of )?(?P<after>{size})"):
        kind = (match["kind"] or match["first"]).lower()
        put_text(reader, BY_NAME["pool" if kind.startswith("kv") else kind], match["before"] or match["after"])
    for match in reader.take(r"0?\.\d+|\d{2,3} ?%"):
        put_text(reader, BY_NAME["gpu_memory_utilization"], match[0].replace(" ", ""))
    for match in reader.take(rf"{_NUMBER}[km]|\d{{4,7}}|\d{{1,3}},\d{{3}}"):
        put_text(reader, BY_NAME["max_model_len"], match[0])
