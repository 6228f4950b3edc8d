"""Secrets are hidden before anything else, and no line moves."""

import time

import pytest

from bot.reading.redact import HIDDEN, redact


def test_a_log_without_secrets_is_untouched() -> None:
    text = "GPU KV cache size: 796,000 tokens\nmax_num_batched_tokens=8192, hf_token=None, tokenizer='Qwen/Qwen3-32B'\n"
    assert redact(text) == (text, 0)


@pytest.mark.parametrize(
    "secret",
    [
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
        "xoxb-123456789012-abcdefABCDEF",
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAABCDEFGHIJKLMNOP",
        "sk-proj-abcdefghijklmnopqrstuv123456",
    ],
)
def test_a_token_is_hidden_wherever_it_stands(secret: str) -> None:
    for text in (f"before {secret} after", f"TOKEN={secret}", f'{{"k": "{secret}"}}', f"\x1b[32m{secret}\x1b[0m", f"line\n{secret}\nline"):
        hidden, count = redact(text)
        assert secret not in hidden
        assert HIDDEN in hidden
        assert count >= 1
        assert hidden.count("\n") == text.count("\n")


def test_a_token_with_a_colour_in_its_midst_is_hidden_whole() -> None:
    hidden, _ = redact("HF_TOKEN=hf_AbCdEfGhIjKl\x1b[31mMnOpQrStUvWxYz01234567 next")
    assert "AbCdEf" not in hidden
    assert "MnOpQr" not in hidden
    assert hidden.endswith(" next")


def test_a_private_key_goes_and_its_lines_stay() -> None:
    text = "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\ndef\n-----END RSA PRIVATE KEY-----\nb"
    hidden, count = redact(text)
    assert "MIIEabc" not in hidden
    assert hidden.count("\n") == text.count("\n")
    assert count == 1


def test_a_password_in_a_url_is_hidden_and_its_host_stays() -> None:
    assert redact("http://user:s3cret@proxy.example:3128/x")[0] == f"http://user:{HIDDEN}@proxy.example:3128/x"


@pytest.mark.parametrize(
    "text",
    ["token " * 40_000, "http://a:" * 25_000, "-----BEGIN PRIVATE KEY-----" * 8_000, "a" * 300_000, "\u0130token=abcdefghij " * 5000],
)
def test_hostile_text_takes_no_long_time(text: str) -> None:
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 2.0


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("export PGPASSWORD=hunter2", ["hunter2"]),
        ("DB_PASS=pw MYSQL_PWD=qw", ["=pw", "=qw"]),
        ("curl -s -u admin:pw http://vllm:8000", [":pw"]),
        ("- name: VLLM_API_KEY\n  value: abc123\n- name: MODE\n  value: fast", ["abc123"]),
        ("  secret: |\n    first\n    second\n  port: 1", ["first", "second"]),
        ("args: {'api_key': ['k1', 'k2'], 'port': 8000}", ["k1", "k2"]),
        ('vllm serve m --api-key "a b c" --port 1', ["a b c"]),
        ("--ssl-keyfile-password x --port 1", [" x "]),
        ("nvapi-AbCdEfGhIjKlMnOpQrSt_-uvwx", ["AbCd"]),
        ("Cookie: theme=dark; sid=3f9c1a", ["3f9c1a"]),
        ("https://store.example/a?X-Amz-Signature=deadbeef&x=1", ["deadbeef"]),
        ("https://store.example/a?sv=1&sig=abc%3D&se=1", ["abc%3D"]),
        ("AccountName=x;AccountKey=abc==;EndpointSuffix=core", ["abc=="]),
        ("password=" + "x" * 5000 + " end", ["xx"]),
    ],
)
def test_a_secret_is_hidden_by_where_it_stands(text: str, secrets: list[str]) -> None:
    hidden, count = redact(text)
    assert [secret for secret in secrets if secret in hidden] == []
    assert count >= 1
    assert hidden.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "B/token = 28*2*8*128*2, bytes per token: 131072",
        "{'eos_token': '<|im_end|>', 'bos_token': 'abcdefgh', 'pad_token': 123456}",
        "secretKeyRef:\n  name: vllm\n  key: api-key",
        "docker run -u 1000:1000 vllm/vllm-openai",
        "vllm serve m --api-key $VLLM_API_KEY --port 8000",
        "HF_TOKEN: <set to the key 'token' in secret 'hf'>",
    ],
)
def test_what_only_sounds_secret_stays(text: str) -> None:
    assert redact(text) == (text, 0)


def test_both_halves_of_a_token_that_a_terminal_broke_are_hidden() -> None:
    secret = "Zx9Qw8Er7Ty6Ui5Op4As3Df2"
    line = "docker run --gpus all -e VLLM_PORT=8000 -e VLLM_API_KEY=" + secret + " vllm/vllm-openai --model Qwen/Qwen3-32B"
    wrapped = line[:70] + "\n" + line[70:]
    padded = "x" * 70 + "\n" + wrapped
    for text in (wrapped, padded, padded.replace("\n", "\r\n")):
        hidden, _ = redact(text)
        assert secret[:10] not in hidden
        assert secret[14:] not in hidden
        assert hidden.count("\n") == text.count("\n")
        assert "Qwen/Qwen3-32B" in hidden


def test_the_line_below_a_whole_token_stays() -> None:
    text = "export HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567\nvllm serve Qwen/Qwen3-32B"
    assert redact(text)[0].endswith("\nvllm serve Qwen/Qwen3-32B")


def test_a_megabyte_of_letters_takes_no_time() -> None:
    text = "abcdefghij" * 100_000
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 0.2
