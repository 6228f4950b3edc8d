"""However a line was broken, no half of a secret stays; and what only follows a secret stays."""

import pytest

from bot.reading.redact import HIDDEN, redact

KEY = "Zq8Lm2Xw7Rt4Yp9Vk3Bn6Hs1Jd5Fg0CxAa"
VALUES = {
    f"hf_{KEY}": f"hf_{KEY}", "sk-proj-abcdefghijklmnopqrstuv987654": "sk-proj-abcdefghijklmnopqrstuv987654", f"ghp_{KEY}9z": f"ghp_{KEY}9z",
    "xoxb-987654321098-abcdefGHIJKL": "xoxb-987654321098-abcdefGHIJKL", "AKIAABCDEFGHIJKLMNOP": "AKIAABCDEFGHIJKLMNOP",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    f"--api-key {KEY}": KEY, f"HF_TOKEN={KEY}": KEY, "--api-key=abcdef-secret-45xyz": "abcdef-secret-45xyz",
}  # fmt: skip
MARGINS = (
    "vllm-1  | ", "INFO 11-30 04:31:07 [x.py:1] ", "[rank3]: ", "(EngineCore_DP0 pid=11) ", "2026-11-30T04:31:07.192837465Z stdout F ", "> ",
    "(EngineCore_DP0 pid=11) INFO 11-30 04:31:07 [x.py:1] ",
)  # fmt: skip


@pytest.mark.parametrize("after", ["4096 tokens", "Qwen3-32B on 8xH100 fails", "8xH100 nodes", "Killed", "vllm serve Qwen/Qwen3-32B", "MODEL=Qwen3-32B",
    "/models/qwen3-x1/a.bin", "INFO 11-30 04:31:07 [x.py:1] on", "torch.OutOfMemoryError: CUDA out of memory", "model-00001-of-00004.safetensors",
    "--max-model-len 8192", "| NVIDIA-SMI 550.54.15 |", "2026-11-30T04:31:07 hello", "CUDA_VISIBLE_DEVICES=0,1", "0.11.0"])  # fmt: skip
@pytest.mark.parametrize("value", ["abcd1234efgh", f"hf_{KEY}"])
def test_the_line_below_a_secret_stays(value: str, after: str) -> None:
    assert redact(f"HF_TOKEN={value}\n{after}")[0] == f"HF_TOKEN={HIDDEN}\n{after}"


@pytest.mark.parametrize(
    "text",
    [
        "loading token\nQwen3-32B-FP8 loaded",
        "the token\n0123456789abcdef0123456789abcdef01234567",
        "tokens: 12\nsha256:0123456789abcdef",
        "max_num_tokens\n4096abc12",
        "-e HF_TOKEN=$X \\\n  -e MODE=fast1 \\\n  vllm/vllm-openai:v0.11.0",
        "HF_TOKEN=\nMODEL=Qwen3-32B",
        "HF_TOKEN:\n  Qwen3-32B-Instruct",
    ],
)
def test_a_line_below_the_name_of_a_secret_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def readable(text: str, value: str) -> list[str]:
    hidden, _ = redact(text)
    assert hidden.count("\n") == text.count("\n")
    return [value[n : n + 6] for n in range(len(value) - 5) if value[n : n + 6] in hidden]


@pytest.mark.parametrize("rest", ["", " vllm/vllm-openai"])
@pytest.mark.parametrize("end", ["\n", "\n    ", "\\\n", "\\\n    ", "\r\n"])
@pytest.mark.parametrize("secret", VALUES)
def test_a_line_of_any_length_that_ends_anywhere_in_a_secret_leaves_no_half(secret: str, end: str, rest: str) -> None:
    for lead in ("", "export ", "docker run -e X=1 "):
        for cut in range(1, len(secret)):
            assert not readable(f"start\n{lead}{secret[:cut]}{end}{secret[cut:]}{rest}\nend", VALUES[secret]), (lead, cut)


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize("secret", VALUES)
def test_nor_where_what_stands_before_the_line_is_said_again(secret: str, margin: str) -> None:
    for cut in range(1, len(secret)):
        lines = ["start", "export " + secret[:cut], secret[cut:], "end"]
        assert not readable("\n".join(margin + line for line in lines), VALUES[secret]), cut


@pytest.mark.parametrize("width", [20, 23, 42, 43, 61])
@pytest.mark.parametrize("secret", [f"--api-key {KEY}", f"HF_TOKEN={KEY}", f"hf_{KEY}"])
def test_nor_at_a_narrow_width_that_breaks_it_several_times(secret: str, width: int) -> None:
    for off in range(width):
        line = f"{'docker run x' * 9}"[: off + 1] + f" {secret} vllm/vllm-openai --port 8000"
        assert not readable("\n".join(line[n : n + width] for n in range(0, len(line), width)), KEY), off
