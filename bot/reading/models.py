"""The model that the evidence names: by flag, by banner, by config, or as an id in running text."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import ahocorasick_rs

from bot.domain.deployment import Setting
from bot.domain.evidence import Fact, LogLine
from bot.domain.known import Known
from bot.reading.anchored import standing

_WORD = r"(?:raises?|fails?|crash(?:es)?|dies|hangs|with|on|and|in|is|to|then|not|for|does|commands?|server)\b"  # "vllm serve raises …"
_SERVE = re.compile(rf"(?:vllm|trtllm-)\s?serve\s+[\"']?(?P<model>(?!-|{_WORD})[\w./~-]*[\w-]+)")
_PYTHON = re.compile(r"""\bLLM\(\s*(?:model\s*=\s*)?["'](?P<model>[\w./~-]+)["']""")
_LABELLED = re.compile(
    r"(?i)(?:^|[\s\-*])(?<!loading )model(?:_name|_id|\s+name)?\s*[:=]\s*`?"
    r"(?P<model>[A-Za-z][\w.-]*/[\w.-]+|[A-Za-z](?=[\w.-]*\d)[\w.-]{3,})"
)
_OWNERS = (
    "Qwen|meta-llama|mistralai|deepseek-ai|google|nvidia|microsoft|openai|zai-org|THUDM|TheBloke|casperhansen|unsloth|"
    "RedHatAI|neuralmagic|cyankiwi|cognitivecomputations|MiniMaxAI|moonshotai|tiiuae|bigcode|01-ai|internlm|OpenGVLab|ibm-granite|Intel|facebook|"
    "CohereForAI|CohereLabs|databricks|lmsys|mosaicml|EleutherAI|allenai|stepfun-ai|XiaomiMiMo|tencent|baidu|ByteDance-Seed|LGAI-EXAONE|"
    "HuggingFaceTB|HuggingFaceH4|NousResearch|TechxGenus|shuyuej|QuantTrio|AngelSlim|ai21labs|state-spaces|llava-hf|openbmb"
)
_ID = re.compile(rf"(?<![\w/.@:-])(?P<model>(?:{_OWNERS})/[\w.-]+\w)")
_FAMILIES = (
    r"qwen|llama|mistral|mixtral|deepseek|gemma|phi|glm|kimi|minimax|nemotron|gpt-oss|command-r|yi|vicuna|falcon|starcoder|"
    r"granite|jamba|internlm|internvl|baichuan|chatglm|codellama|whisper|pixtral|olmo|exaone|step|ernie|hunyuan|dsv\d|r1"
)
_FAMILY = re.compile(
    rf"(?i)(?<![\w/.-])(?P<model>(?:{_FAMILIES})"
    r"[\w.]{0,40}(?:-[\w.]{1,40}){0,12}\d[\w.]{0,40}(?:-[\w.]{0,40}[A-Za-z0-9]){0,12})"
)
_NAME = re.compile(r"[~./\w$-][\w./:@$ {}()+-]{0,250}[\w/})]")
_CLASS = re.compile(r"\.(?:py|sh|so|yaml)$|[a-z\d](?:ForCausalLM|ForConditionalGeneration|LMHeadModel|ForSequenceClassification)$")
_OTHER_FLAG = re.compile(r"""--(?!(?:[\w-]*model|mcore|pretrain|tokenizer))[\w-]{1,60}[= ]["']?$""")
MOST_LINES = 4000


def model_named(lines: Sequence[LogLine], facts: Sequence[Fact], given: Known[Setting] | None) -> Known[str] | None:
    """A flag's value first, then what the engine printed, then an id in the text, then a name that looks like a model."""
    if given is not None and _is_name(str(given.value).strip("\"'")):
        return Known(str(given.value).strip("\"'"), given.origin, given.source, given.line)
    for fact in facts:
        if isinstance(fact.fields.get("model"), str) and _is_name(fact.fields["model"]):
            return Known(str(fact.fields["model"]), "log", fact.source, fact.line)
    places = _places([line.text for line in lines[:MOST_LINES]])
    for pattern in (_SERVE, _PYTHON, _ID, _LABELLED, _FAMILY):
        for place in places.get(pattern, ()):
            line = lines[place]
            match = pattern.search(line.text)
            if match is not None and _is_name(match["model"]) and not _OTHER_FLAG.search(line.text, 0, match.start("model")):
                return Known(match["model"], "log", line.source, line.number)
    return None


def _is_name(text: str) -> bool:
    """Could a model be called so? Not a file of the program, a class, or the beginning of a message."""
    return _NAME.fullmatch(text) is not None and _CLASS.search(text) is None


def _places(texts: Sequence[str]) -> Mapping[re.Pattern[str], Sequence[int]]:
    """Which lines each pattern may match: those with a text that it needs, all found at once."""
    automaton, patterns = _needles()
    lower = [text.lower() for text in texts]
    found: dict[re.Pattern[str], dict[int, None]] = {}
    for place, needle, start in standing(automaton, lower):
        before = lower[place][start - 1 : start]
        if patterns[needle] is not _FAMILY or not (before.isalnum() or before in ("_", "/", ".", "-")):
            found.setdefault(patterns[needle], {})[place] = None
    return {pattern: list(places) for pattern, places in found.items()}


@lru_cache(maxsize=1)
def _needles() -> tuple[ahocorasick_rs.AhoCorasick, list[re.Pattern[str]]]:
    pairs = [("serve", _SERVE), ("llm(", _PYTHON), ("model", _LABELLED)]
    pairs += [(f"{owner.lower()}/", _ID) for owner in _OWNERS.split("|")] + [
        (name.removesuffix(r"\d"), _FAMILY) for name in _FAMILIES.split("|")
    ]
    return ahocorasick_rs.AhoCorasick([needle for needle, _ in pairs]), [pattern for _, pattern in pairs]
