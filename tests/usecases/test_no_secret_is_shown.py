"""Whatever an export, a chat or a terminal did to a log: no secret in it reaches a diagnosis."""

import csv
import io
import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.incident import Contribution
from bot.reading.redact import HIDDEN, hidden_in, redact
from bot.rulebook.load import load_rulebook
from bot.usecases.judge import judge

KEY = "Zq8Lm2Xw7Rt4Yp9Vk3Bn6Hs1Jd5Fg0CxAa"
ERROR = "(EngineCore_DP0 pid=11) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB."
SECRETS = (
    f"--quantization hf_{KEY}",
    f"--kv-cache-dtype sk-proj-{KEY}",
    f"-e HF_TOKEN={KEY}",
    f"--api-key {KEY}",
    f"--download-dir https://u:{KEY}@host/x",
)
BETWEEN = ("", "\u200b", "\u00ad", "\x08", "\x1b[31m", "\x1b[>4;2m", "[31m", "\x1b7", "\u202e")


def records(lines: list[str]) -> str:
    return "\n".join(json.dumps({"timestamp": str(n), "log": line + "\n"}) for n, line in enumerate(lines))


def array(lines: list[str]) -> str:
    return json.dumps([{"timestamp": str(n), "line": line} for n, line in enumerate(lines)], indent=1)


def table(lines: list[str]) -> str:
    rows = io.StringIO()
    csv.writer(rows).writerows([("Date", "Message"), *((str(n), line) for n, line in enumerate(lines))])
    return rows.getvalue()


def boxed(lines: list[str]) -> str:
    return "\n".join(f"│ {line[at : at + 70]:<70} │" for line in lines for at in range(0, len(line), 70))


WRITTEN = {
    "as it is": "\n".join,
    "as records": records,
    "as an array": array,
    "as a table": table,
    "in a box": boxed,
    "wrapped": lambda lines: "\n".join(line[at : at + 93] for line in lines for at in range(0, len(line), 93)),
    "in Markdown": lambda lines: "\n".join(lines).replace("_", "\\_").replace("-", "\\-"),
    "in HTML": lambda lines: "\n".join(lines).replace("=", "&#61;").replace("_", "&#95;").replace("-", "&#x2d;"),
    "twice in HTML": lambda lines: "\n".join(lines).replace("=", "&amp;#61;").replace(":", "&amp;#58;"),
    "as Go writes JSON": lambda lines: records(lines).replace("=", "\\u003d").replace("/", "\\/"),
}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(WRITTEN)), st.sampled_from(SECRETS), st.sampled_from(BETWEEN), st.integers(1, 50))
def test_no_secret_reaches_a_diagnosis(written: str, secret: str, between: str, at: int) -> None:
    planted = secret[: at % len(secret)] + between + secret[at % len(secret) :]
    lines = [
        f"vllm serve Qwen/Qwen3-32B {planted} --max-model-len 8192",
        *["(EngineCore_DP0 pid=11) INFO 11-30 04:31:07 [x.py:1] on"] * 4,
        ERROR,
    ]
    text, hidden = redact(WRITTEN[written](lines))
    shown = json.dumps(judge(load_rulebook(), [Contribution("paste", text, redactions=hidden)]), ensure_ascii=False)
    assert not [KEY[n : n + 8] for n in range(len(KEY) - 7) if KEY[n : n + 8] in shown]


def test_a_document_without_secrets_is_the_same_and_a_value_is_known_by_its_name() -> None:
    document = {
        "flag": "--max-model-len",
        "tokenizer": "Qwen/Qwen3-32B",
        "num_tokens": "4096",
        "lines": {"a": 1},
        "list": ["eos_token", None],
    }
    assert hidden_in(document) == document
    assert hidden_in({"args": {"api_key": "zq8"}, "more": [f"hf_{KEY}"]}) == {"args": {"api_key": HIDDEN}, "more": [HIDDEN]}
