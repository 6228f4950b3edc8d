"""Which lines of a paste are a person's own words."""

import re

from bot.domain.evidence import LogLine

LONGEST = 4000
_SENTENCE = re.compile(r"[A-Za-z']{2,} [A-Za-z'`(]")
_PRINTED = re.compile(
    r"""\W{0,9}(?:
      \[?\d{2,4}[-/]\d\d[-/]\d\d                        # a date
      |\d{1,3}(?:\.\d{1,3}){3}\b                           # an access log
      |[a-z][\w.]*_\w+:\                                 # a function of C
      |(?:ERROR|INFO|WARN(?:ING)?|DEBUG)\b|\[(?:TensorRT-LLM|TRT|TM)|[$>]\s
      |[^"]{0,120}\b(?:level=(?i:info|warn|error|debug)|msg=")   # a structured log
      |(?!.*(?:\bOOM|out\ of\ memory))(?:[^|]{0,60}\|){2,}[^|]{0,60}$|\|.*\bUNAVAILABLE\b|[^|]*\d%\|   # a table, a progress bar
      |(?:Loading|Starting|Using|Downloading)\b.*(?:\.\.\.|…)$
      |(?=[ -~]*$)(?:sudo\ )?(?:python3?|vllm|docker|CUDA_VISIBLE_DEVICES=\S+|torchrun|lmdeploy|trtllm\S*)\ (?:\S+\ )?
       \S*(?:\.py|serve|run|-m)\b                         # a command
    )""",
    re.VERBOSE,
)


def is_unsigned(line: LogLine) -> bool:
    """Did no engine sign the line? A person may have written it."""
    return not (line.level or line.file or line.speaker.role != "unknown" or len(line.text) > LONGEST)


def is_talk(line: LogLine) -> bool:
    """Does the line hold a person's words? Two at least, or another script than Latin; what a program prints is none."""
    if not is_unsigned(line) or _PRINTED.match(line.text):
        return False
    return not line.text.isascii() or _SENTENCE.search(line.text) is not None
