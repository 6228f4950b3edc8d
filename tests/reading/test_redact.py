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


@pytest.mark.parametrize("text", ["token " * 40_000, "http://a:" * 25_000, "-----BEGIN PRIVATE KEY-----" * 8_000, "a" * 300_000, "\u0130token=abcdefghij " * 5000])
def test_hostile_text_takes_no_long_time(text: str) -> None:
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 2.0
