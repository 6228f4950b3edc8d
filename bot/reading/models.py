"""The model that the evidence names: by flag, by banner, by config, or as an id in running text."""

import re
from collections.abc import Sequence

from bot.domain.deployment import Setting
from bot.domain.evidence import Fact, LogLine
from bot.domain.known import Known

_WORD = r"(?:raises?|fails?|crash(?:es)?|dies|hangs|with|on|and|in|is|to|then|not|for|does|commands?|server)\b"  # "vllm serve raises …"
_SERVE = re.compile(rf"(?:vllm|trtllm-)\s?serve\s+[\"']?(?P<model>(?!-|{_WORD})[\w./~-]*[\w-]+)")
_PYTHON = re.compile(r"""\bLLM\(\s*(?:model\s*=\s*)?["'](?P<model>[\w./~-]+)["']""")
_LABELLED = re.compile(
    r"(?i)(?:^|[\s\-*])(?<!loading )model(?:_name|_id|\s+name)?\s*[:=]\s*`?(?P<model>[A-Za-z][\w.-]*/[\w.-]+|[A-Za-z][\w.-]{3,})"
)
_ID = re.compile(
    r"(?<![\w/.@:-])(?P<model>(?:Qwen|meta-llama|mistralai|deepseek-ai|google|nvidia|microsoft|openai|zai-org|THUDM|TheBloke|casperhansen|unsloth|"
    r"RedHatAI|neuralmagic|cyankiwi|cognitivecomputations|MiniMaxAI|moonshotai|tiiuae|bigcode|01-ai|internlm|OpenGVLab|ibm-granite|Intel|facebook|"
    r"CohereForAI|CohereLabs|databricks|lmsys|mosaicml|EleutherAI|allenai|stepfun-ai|XiaomiMiMo|tencent|baidu|ByteDance-Seed|LGAI-EXAONE|"
    r"HuggingFaceTB|HuggingFaceH4|NousResearch|TechxGenus|shuyuej|QuantTrio|AngelSlim|ai21labs|state-spaces|llava-hf|openbmb)/[\w.-]+\w)"
)
_FAMILY = re.compile(
    r"(?i)(?<![\w/.-])(?P<model>(?:qwen|llama|mistral|mixtral|deepseek|gemma|phi|glm|kimi|minimax|nemotron|gpt-oss|command-r|yi|vicuna|falcon|starcoder|"
    r"granite|jamba|internlm|internvl|baichuan|chatglm|codellama|whisper|pixtral|olmo|exaone|step|ernie|hunyuan|dsv\d|r1)"
    r"[\w.]{0,40}(?:-[\w.]{1,40}){0,12}\d[\w.]{0,40}(?:-[\w.]{0,40}[A-Za-z0-9]){0,12})"
)


def model_named(lines: Sequence[LogLine], facts: Sequence[Fact], given: Known[Setting] | None) -> Known[str] | None:
    """A flag's value first, then what the engine printed, then an id in the text, then a name that looks like a model."""
    if given is not None:
        return Known(str(given.value).strip("\"'"), given.origin, given.source, given.line)
    for fact in facts:
        if isinstance(fact.fields.get("model"), str):
            return Known(str(fact.fields["model"]), "log", fact.source, fact.line)
    for pattern in (_SERVE, _PYTHON, _ID, _LABELLED, _FAMILY):
        for line in lines[:4000]:
            match = pattern.search(line.text)
            if match is not None and not match["model"].endswith((".py", ".sh", ".so", ".yaml")):
                return Known(match["model"], "log", line.source, line.number)
    return None
