"""Compiles rule patterns with the shared pieces they may name: figures (?&SIZE), (?&NUM), (?&COUNT), (?&G); (?&SEEN); what stands
around a secret (?&SUFFIX), (?&SAYS), (?&MARGIN), (?&UNLESS), (?&VALUE), (?&RANDOM), (?&KNOWN).
"""

import re
from functools import lru_cache
from typing import Any

import regex

PIECES = {
    # a figure begins where no digit stands before it: else a long run of digits is tried from each of them
    "NUM": r"(?<!\d)[-+\u2212]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?",
    "COUNT": r"(?<!\d)(?:\d{1,3}(?:,\d{3})+|\d+)",
    "SIZE": r"(?<!\d)[-+\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?\ ?(?:bytes|[KMGT]i?B|B)\b",
    # behind a secret's name: a number, a stage; not what makes it the name of a file, a limit or a reference
    "SUFFIX": r"""(?:(?:[_.-](?!(?i:files?|path|dir|names?|refs?|policy|ids?|type|fields?|env|vars?|ur[li]|count|limit|length?|min|max|size
  |ttl|expir\w*|stdin|manager|version|provider|backend|store|mount|required|enabled|index|budget|prefix|headers?|placeholder|tokens?|is|was|for|via)
  (?![A-Za-z0-9]))[A-Za-z0-9]{1,20}){1,3}|\d{1,3})?""",
    "SAYS": r"""\\*['"]?(?:(?<=['"])\])?(?:
  [^\S\n]{0,40}(?::=|[=-]>|\u2192|[?+]=|[=:](?!=))[^\S\n]{0,40}(?:\\\r?\n(?&MARGIN)?[^\S\n]{0,40}|\r?\n[^\S\n]{0,40}(?:-[^\S\n]+|(?=(?&RANDOM)={0,2}[^\S\n]*(?:\r?\n|$))(?!(?&KNOWN))))?
  |,?[^\S\n]{0,40}(?:\r?\n(?:[^\n'"]{0,80}?(?<![A-Za-z]))?)?\\*['"]?val(?:ue)?\\*['"]?[^\S\n]{0,40}[:=][^\S\n]{0,40}
  |(?<=\(b?\\*['"][\w.-]{1,60}\\*['"])[^\S\n]{0,4},[^\S\n]{0,4}
  |(?<=<[\w:.-]{1,60})>
  |(?<=(?<![\w-])--?[A-Za-z][\w.-]{0,60}\\*['"]?)(?:(?<=['"]),)?[^\S\n]{0,40}(?:\\\r?\n(?&MARGIN)?[^\S\n]{0,40}-?|\r?\n[^\S\n]{0,40}-?(?![\w.]+(?:Error|Exception)|INFO|ERROR|WARNING|DEBUG))?[^\S\n]{0,40}(?<![A-Za-z0-9])(?!-)
  |(?<=\b(?:ENV|setx|setenv|set\ -\w{1,3}|export|-e|config(?:ure)?\ set)[^\S\n][A-Z0-9_.-]{1,60})[^\S\n]+
  |[^\S\n]{0,4}[)\]]?[^\S\n]{0,4}(?:\bor\b|\|\||\?\?)[^\S\n]{0,4}(?=\\*b?\\*['"])
  |[^\S\n]{1,4}(?:is|was|ist|lautet)\b[^\S\n]{0,4}:?[^\S\n]{1,4}['"`]?(?=(?&RANDOM))(?!(?&KNOWN))
  |[^\S\n]{0,4}\((?=['"]?(?&RANDOM)={0,2}['"]?\))(?!['"]?(?&KNOWN))
  |(?-i:(?<=(?<![A-Za-z0-9])[A-Z][A-Z0-9]{0,20}_[A-Z0-9_]{1,40}))(?:[^\S\n]*\t[^\S\n]*|\ {2,40})(?=(?&RANDOM)={0,2}(?:\s|$))(?!(?&KNOWN))
  |[^\S\n]{1,40}\|[^\S\n]{1,40}(?=(?&RANDOM))(?=\S{12})
  |[^\S\n]+(?=['"]?[A-Za-z0-9+/_-]{0,60}\d)(?=['"]?[A-Za-z0-9+/_-]{20})
  )""",
    "UNLESS": r"""(?!(?:Secret(?:Str|Bytes)?\()?\\*[bfru]{0,2}\\*['"]?(?:
  (?:None|null|nil|True|False|EMPTY|unset|str|bytes|int|float|bool|list|dict|tuple|Any|Sequence|Mapping|Optional|Union|await|SecretStr(?!\())(?![\w-])
  |(?:token|password|api_key|secret|required|missing|not)(?![\w-])(?![^\S\n]+[^\s'"=:(]*\d)|\{
  |\[hidden\]|\*{3,}(?=[\s'",;)\\]|$)|<[^<>\n]{0,80}>|`(?:[\s.,;:)/]|$)|`[^`\n]*\ [^`\n]*`|\.{3}|\u2026
  |(?:self|cls|args|config|settings|options|opts|kwargs|params|request|data)\.[A-Za-z_][\w.]*(?=[\s'",;)}\]\[(|]|$)|(?:[a-z]+_)+(?:token|secret|password|key)(?=[\s'",;)}\]]|$)|[a-z_]+(?:\.[a-z_]+)*\.(?:[a-z_]*(?:token|secret|password|key|credentials?)(?=[\s'",;)}\]]|$)|[a-z_]+\()
  |(?-i:[A-Z]+(?:_[A-Z]+)+)(?=[\s'",;)}\]]|$)|os\.(?:environ|getenv)\b|(?:get_?env|getpass)\(
  |\$\(|\$\{|(?-i:\$[A-Z_][A-Z0-9_]*)(?:[\s'",)\]]|$)))(?<!\$\{\w{1,60}:)""",
    "VALUE": r"""(?:
  "{3}\s?(?P<secret>[^"]{1,4000})
  |(?<=(?:-e|--env|[\[,])[^\S\n]{0,3}"[\w.-]{1,60}=)(?P<secret>[^"\\\n]+)(?=")|(?<=(?:-e|--env|[\[,])[^\S\n]{0,3}'[\w.-]{1,60}=)(?P<secret>[^'\\\n]+)(?=')
  |(?:Secret(?:Str|Bytes)?\()?[bfru]{0,2}(?:"(?P<secret>(?:[^"\\\n]++|\\.)++)|'(?P<secret>(?:[^'\\\n]++|\\.)++)|\\+"(?P<secret>[^"\\\n]+)|\\+'(?P<secret>[^'\\\n]+))
  |\[\s*(?:\\*['"]?(?P<secret>(?!\[|None\b)[^\s'",\]\[\\]+)\\*['"]?\s*,?\s*)+
  |(?P<secret>(?:[^\s'",;)}\]\[\\|><]++|\\(?![nrt"'\s])|[,;](?=[^\s'",;)}\]>|])(?![A-Za-z_]\w*=)|(?:[)}\]>|]|<(?!/))(?=[^\s'",;)}\]>|])|['"](?=[A-Za-z0-9]{4}))++)
   (?:\s*\n[^\S\n]{0,40}-[^\S\n]+\\*['"]?(?P<secret>[A-Za-z0-9]{8,})(?=['"\s]|$))*
  )""",
    # what looks random and is none: models, cards, types, figures, images and log words
    "KNOWN": r"""(?i:(?:[A-Za-z][\w.-]*/)?(?:qwen|qwq|llama|codellama|meta-|mistral|mixtral|ministral|devstral|codestral|deepseek|gemma
  |phi-?\d|gpt|glm|kimi|yi-|falcon|command|granite|nemotron|minimax|ernie|hunyuan|intern|opus|olmo|starcoder|smol|vicuna|tinyllama|whisper|bge-|bloom
  |opt-\d|vllm|sglang|lmdeploy|ollama|tensorrt|trt|tgi|cuda|cudnn|nccl|torch|nvidia|python|gpu|cpu|rtx|gtx|tesla|geforce
  |[abhlv]\d{2,3}(?![A-Za-z0-9]{4})|g?b[23]00|gh200|mi\d{3}|fp\d|bf16|int\d|w\d+a\d+|\d+x(?:[abhlv]?\d|rtx|mi\d|\b)|x\d(?![A-Za-z0-9])
  |v?\d+[.:_-]\d+|\d+[kmgt]?i?b?(?![A-Za-z0-9])|0x[0-9a-f]{6}|rank|worker|layer|model|(?:tp|pp|dp|ep)[_=\d]|port
  |info|error|warning|debug|critical|traceback|killed|aborted|segmentation|terminated|exception|runtime|process|engine
  |docker|kubectl|export|http)
  |[.~]?/(?:models?|data|mnt|home|root|opt|usr|tmp|var|etc|srv|app|cache|workspace)\b
  |[\w.-]*\.(?:safetensors|bin|gguf|py|log|txt|json|ya?ml|sh|so|pt)\b|[A-Z]\w*(?:Error|Exception)\b)""",
    # the unit behind a figure of GiB, where people write one
    "G": r"(?:\ ?[Gg](?:[Ii]?[Bb])?\b)?",
    # where the line, or the paste, was cut
    "CUT": r"""\s*(?:(?:\.{3}|\u2026)[`"')\]]{0,3})?\s*$""",
    # not behind "never see", "no longer get": who writes that names the message which does not come
    "SEEN": "".join(
        rf"""(?<!{never}\ (?:see|get|hit|saw|got)\ {article}{quote})"""
        for never in ("never", "not", "n't", "n\u2019t", "longer")
        for article in ("", r"a\ ", r"any\ ", r"the\ ")
        for quote in ("", r"""["'`\u201c*]""", r"""["'`\u201c*]{2}""")
    ),
    # an argument that people try at one value and another, what stands between a word and it, a value, and how it went
    "ARGUMENT": r"""(?:batch\ size|max[-_ ]num[-_ ]seqs|max[-_ ]num[-_ ]batched[-_ ]tokens
  |max[-_ ]model[-_ ]len|gpu[-_ ]memory[-_ ]utilization)""",
    "TRIED": r"""(?=[bmg])(?P<name>(?&ARGUMENT))(?<!\w(?&ARGUMENT)|\w--?(?&ARGUMENT))[`*"']{0,2}""",
    "UP_TO_IT": r"""[`*"'-]{0,4}(?&ARGUMENT)[`*"']{0,2}""",
    "SETTING": r"""(?:\d{1,3}(?:,\d{3})+|\d{1,7}|0?\.\d{1,3})(?![\d.]*\d|[kKmM%]|,\d|\ ?[GMK]i?B\b|\ (?:GPU|card)s?\b)""",
    # not what went well elsewhere: on another card, for another model, in eager mode, until the first request
    "WENT_WELL": r"""\b(?<!(?:not|n['\u2019]t|never|longer|almost|nearly|hardly|barely|sometimes)\ )(?:work(?:s|ed)
  |start(?:s|ed)|boot(?:s|ed)|r[au]ns?(?!\ (?:out|into))|fine|ok
  |okay|pass(?:es|ed)|succeed(?:s|ed)|fits|c[ao]mes?\ up|stable)(?!\?|(?&ELSEWHERE))\b""",
    "ELSEWHERE": r"""(?:\ (?:it|this|that|everything|there|fine|well|ok|up|again|only|just|but|and|then)\b,?){0,3}\ (?:on
  |for(?!\ (?:me|us)\b)|in|under|until|without|before|oom\w*|(?:dies|crashes|fails|runs\ out)|with\ (?:eager
  |(?:(?:the|an?|my|one|two|single)\ |\d+\ ?x?\ ?)(?:other|another|old|smaller|eager|\d+b|gpus?|cards?|model)\b))""",
    "WENT_WRONG": r"""\b(?:(?:cuda\ |gpu\ )?OOM(?:s|ed|'s|'d|-?killed)?\b|(?:out\ of|no)\ (?:gpu\ )?memory\b
  |(?:fail|crash|exhaust)(?:s|ed|es)?\b|(?:die[sd]?|killed)\b
  |(?:do|does|did)(?:\ not|n['\u2019]t)(?:\ (?:work|start|boot|fit|come\ up)\b|(?=\s*(?:[.,;!]|$))))""",
    # what stands before the second line of a command
    "MARGIN": r"""(?:[a-z][a-z0-9_.-]{0,50}-\d{1,3}[^\S\n]{1,12}\||\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,40}(?:[^\S\n]std(?:out|err)[^\S\n][FP])?
  |\([A-Za-z]\w{0,40}[^()\n]{0,40}pid=\d+[^()\n]{0,40}\)|[│>])[^\S\n]""",
    "RANDOM": r"""(?=[A-Za-z_+/.~%-]*\d)(?=[\d_+/.~%-]*[A-Za-z])[A-Za-z0-9_+/.~%-]{8,}""",
}
"""Put in where a pattern names them: a call of a shared group would cost seven times as much as its text."""
_CALL = regex.compile(r"\(\?&(\w+)\)")
TIMEOUT = 1.0


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> "regex.Pattern[str]":
    """A rule's pattern in verbose mode, so that a space is written `\\ ` and a pattern may run over lines.

    regex.error when it is none.
    """
    return regex.compile(f"(?-f){expanded(pattern)}", regex.VERBOSE | regex.VERSION1)  # ß is not ss: that takes twice the time


def expanded(pattern: str) -> str:
    """The pattern with the shared pieces in their places; a piece may name another."""
    put = _CALL.sub(lambda call: f"(?:{PIECES[call[1]]})" if call[1] in PIECES else call[0], pattern.strip("\n"))
    return put if put == pattern else expanded(put)


@lru_cache(maxsize=256)
def quick(pattern: str) -> "re.Pattern[str] | regex.Pattern[str]":
    """The same for short texts, without a time limit: the standard library takes half the time for what it can compile."""
    try:
        return re.compile(expanded(pattern), re.VERBOSE)
    except re.error:
        return compiled(pattern)


def search(pattern: str, text: str, start: int = 0, end: int | None = None) -> "regex.Match[str] | None":
    """The first match, or None; also None when the time limit runs out, so that no line can hold up a reading."""
    try:
        return compiled(pattern).search(text, start, end, timeout=TIMEOUT)
    except TimeoutError:
        return None


def match(pattern: str, text: str, start: int = 0) -> "regex.Match[str] | None":
    """The same at the given position only."""
    try:
        return compiled(pattern).match(text, start, timeout=TIMEOUT)
    except TimeoutError:
        return None


def groups(found: "regex.Match[str]") -> dict[str, Any]:
    """Named groups that took part, the shared definitions left out."""
    return {k: v for k, v in found.groupdict().items() if v is not None and not k.isupper()}
