"""What drafts, what is adapted and what is offloaded, as people shorten it: `mtp 1`, `draft llama-3.2-1b 5`, `4 loras rank 64`."""

from typing import Any

from bot.usecases.sizing.reader import Reader

_DRAFTED = 3
"""Tokens drafted at once where the words do not say; what model cards of EAGLE heads start with."""


def read_drafts(reader: Reader) -> None:
    """mtp 1, eagle3, ngram 4, draft llama-3.2-1b 5."""
    for match in reader.take(r"(?P<method>mtp|eagle-?3?|ngram|dflash|dspark|medusa)(?:[ =:-]?(?P<tokens>\d{1,2})(?: tokens?)?)?"):
        method = match["method"].lower().replace("-", "")
        _draft(reader, {"method": method}, match["tokens"] or ("1" if method == "mtp" else None), method)
    for match in reader.take(r"draft(?:ed by| model)?[ =:]+(?P<model>[A-Za-z][\w./-]*\w)(?: (?P<tokens>\d{1,2})(?: tokens?)?(?![.\w]))?"):
        _draft(reader, {"method": "draft_model", "model": match["model"]}, match["tokens"], match["model"])


def _draft(reader: Reader, told: dict[str, Any], tokens: str | None, what: str) -> None:
    if "speculative_config" in reader.question:
        return
    if tokens is None:
        reader.corrections.append(f"{what!r} without a number: {_DRAFTED} tokens drafted at once are taken")
    reader.put("speculative_config", {**told, "num_speculative_tokens": int(tokens or _DRAFTED)})


def read_adapters(reader: Reader) -> None:
    """lora rank 64, 4 loras, lora."""
    for match in reader.take(
        r"(?:(?P<slots>\d{1,3}) )?loras?(?:[ -]adapters?)?(?:[ ,]*(?:max[ -])?rank[ =:]*(?P<rank>\d{1,3}))?|lora[ =:]*(?P<short>\d{1,3})"
    ):
        reader.put("enable_lora", True)
        for name, said in (("max_loras", match["slots"]), ("max_lora_rank", match["rank"] or match["short"])):
            if said:
                reader.put(name, int(said))
    for match in reader.take(
        r"(?:cpu[ -]?)?offload(?:ing)?[ =:]*(?P<after>\d+) ?g(?:i?b)?|(?P<before>\d+) ?g(?:i?b)? (?:cpu[ -]?)?offload(?:ed|ing)?"
    ):
        reader.put("cpu_offload_gb", float(match["after"] or match["before"]))
