"""Secrets are hidden before anything else, and no line moves."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reading.contributed import contributed, without_secrets
from bot.reading.redact import HIDDEN, redact
from bot.reading.text import clean, harmless


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
    [
        "token " * 40_000,
        "http://a:" * 25_000,
        "-----BEGIN PRIVATE KEY-----" * 8_000,
        "a" * 300_000,
        "\u0130token=abcdefghij " * 5000,
        "\\" * 200_000,
        "_KEY" * 50_000,
        "password='" * 20_000,
        "api_key=[" + "a, " * 60_000,
        "\x1b]" * 50_000,
        "data:\n" * 30_000,
        '""' * 100_000,
        "eyJ\nAb1" * 30_000,
        "hf_\nabc\n" * 25_000,
        "--api-key a b c " * 12_000,
    ],
)
def test_hostile_text_takes_no_long_time(text: str) -> None:
    begun = time.process_time()
    redact(text)
    assert time.process_time() - begun < 5.0


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


@pytest.mark.parametrize(
    "text",
    [
        'os.environ["HF_TOKEN"] = os.environ["OTHER"]',
        'os.environ["HF_TOKEN"] = getpass()',
        'token = os.environ.get("HF_TOKEN") or None',
        "vllm serve --api-key $KEY Qwen/Qwen3-32B",
        "--api-key ${KEY} and it crashes on 8xH100 with TP 8",
        "- name: EXTRA_ARGS\n  value: >-\n    --max-model-len 8192\n    --tensor-parallel-size 2",
        "HF_TOKEN is missing on node gpu-07",
        "HF_TOKEN  Llama-3.1-8B",
        "a token is 4096B/layer12, bytes per token is 131072bytes1",
        "quantization strategy: token (w8a8int8x), per-token (fp8_e4m3)",
        "max_num_batched_tokens -> 8192, def token(self) -> Optional[str]:",
        "pw: 300 W, pass: 3 of 5 tests, PASS: test_a1b2c3 in 3 s",
        "JWT=none auth=none auth=(None, None)",
        "echo 3 > /proc/sys/vm/drop_caches; echo done | tee log; rsync -av models gpu-07:/data/models",
        "the access key is needed; пароль не нужен; 密钥错误; contraseña",
    ],
)
def test_what_only_stands_where_a_secret_might_stays(text: str) -> None:
    assert redact(text) == (text, 0)


@pytest.mark.parametrize(
    "text",
    [
        'os.environ["HF_TOKEN"] = "klartext-45"',
        'config["auth"]["api_key"] = \'klartext\'',
        'env["X_TOKEN"]="klartext"',
        'os.getenv("HF_TOKEN") or "klartext"',
        'process.env.HF_TOKEN || "klartext"',
        "- name: DB_PASSWORD\n  value: >-\n    klartext here",
        "vllm-1 | - name: DB_PASSWORD\nvllm-1 |   value: |\nvllm-1 |     first\nvllm-1 |     klartext",
        "vllm serve x --api-key key1-aaa klartext-bbb",
        "vllm serve x --api-key alpha klartext beta --port 1",
        "vllm serve x --api-key alpha klartext \\\n  --port 1",
        "['--api-key', 'k1', 'klartext', '--port', '8000']",
        "- --api-key\n- k1\n- klartext\n- --port",
        *(f"HF_TOKEN{says}klartext12" for says in (" is ", " -> ", "\t", " ?= ", " += ", "?=", "=\n", "=\\\n")),
        "HF_TOKEN (klartext12)",
        "the api key is: klartext-abc-999",
        "das Passwort lautet klartext9",
        "mot de passe : klartext",
        "la contraseña es klartext9",
        "Пароль: klartext",
        "비밀번호는 klartext9 입니다",
        "パスワードは klartext9",
        "pw: klartext",
        "PW=klartext",
        "user: b pass: klartext",
        "JWT=klartext9ab",
        "auth=klartext9ab",
        "ssh root:klartext@host",
        "aws configure set aws_secret_access_key klartext9",
        "echo klartext | docker login --password-stdin",
        "setenv HF_TOKEN klartext",
        'requests.get(url, auth=("b","klartext"))',
        '{"key":"HF_TOKEN","val":"klartext"}',
    ],
)
def test_a_secret_is_hidden_however_code_and_people_hand_it_on(text: str) -> None:
    hidden, count = redact(text)
    assert "klartext" not in hidden
    assert count >= 1
    assert hidden.count("\n") == text.count("\n")


KEY = "Zq8Lm2Xw7Rt4Yp9Vk3Bn6Hs1Jd5Fg0CxAa"
SHAPES = {
    "a token": f"hf_{KEY}", "a variable": f"HF_TOKEN={KEY}", "a flag": f"--api-key {KEY}", "JSON": f'"api_key": "{KEY}", "port": 1',
    "a header": f"Authorization: Bearer {KEY}", "an address": f"https://user:{KEY}@host/x", "YAML": f"  password: {KEY}",
}  # fmt: skip
BETWEEN = (
    "\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\x00", "\x08", "\x7f", "\x1b[31m", "\x1b[0;1m", "\x1b]8;;http://x\x07", "\x1b[>4;2m", "\x1b7", "\x9b1m",
    "\\x1b[31m", "\\u001b[0m", "^[[1m", "\u202e", "\u2066",
)  # fmt: skip


def left(text: str) -> str:
    """The longest piece of the key that can still be read, however the text is shown."""
    hidden, _ = redact(text)
    assert hidden.count("\n") == text.count("\n")
    seen = [hidden, harmless(hidden), "".join(clean(line) for line in hidden.split("\n"))]
    return max(
        (KEY[a:b] for one in seen for a in range(len(KEY)) for b in range(a + 1, len(KEY) + 1) if KEY[a:b] in one), key=len, default=""
    )


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SHAPES)), st.sampled_from(BETWEEN), st.integers(1, 60), st.integers(1, 60))
def test_what_nobody_sees_inside_a_secret_does_not_save_it(shape: str, between: str, first: int, second: int) -> None:
    text = SHAPES[shape]
    for at in sorted({first % len(text), second % len(text)} - {0}, reverse=True):
        text = text[:at] + between + text[at:]
    assert len(left(f"INFO started with {text} and more")) < 6


@pytest.mark.parametrize(
    ("written", "plain"),
    [("\\_", "_"), ("&#61;", "="), ("&amp;#x3d;", "="), ("%3D", "="), ("\\u003d", "="), ("\u00a0= ", "="), ("&quot;", '"'), ("%22", '"')],
)
def test_a_name_whose_letters_were_escaped_is_still_a_name(written: str, plain: str) -> None:
    for text in (f"OPENAI_API_KEY={KEY} x", f'{{"api_key": "{KEY}"}}', f'GET /?"password":"{KEY}"'):
        assert len(left(text.replace(plain, written))) < 6


MARGINS = (
    "",
    "vllm-1  | ",
    "2026-11-30T04:31:07.123456789Z stdout F ",
    "(EngineCore_DP0 pid=11) ",
    "[rank3]: ",
    "> ",
    "Nov 30 04:31:07 node7 vllm[123]: ",
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(sorted(SHAPES)), st.sampled_from(MARGINS), st.sampled_from([61, 80, 97, 137, 200]), st.integers(1, 60), st.booleans()
)
def test_a_wrap_at_any_width_behind_any_margin_leaves_no_half(shape: str, margin: str, width: int, off: int, crlf: bool) -> None:
    secret = SHAPES[shape]
    off = 1 + off % (len(secret) - 1)
    line = ("INFO " + "y" * width)[: width - off - 1] + " " + secret + " end"
    end = "\r\n" if crlf else "\n"
    lines = ["INFO 11-30 04:31:07 [x.py:1] loading", line[:width], line[width:], "INFO 11-30 04:31:08 [x.py:1] loaded"]
    assert len(left(end.join(margin + one for one in lines))) < 8


def test_a_box_around_a_token_leaves_no_half() -> None:
    assert len(left(f"│ token hf_{KEY[:12]} │\n│ {KEY[12:]} │\n│ next line        │")) < 6


@pytest.mark.parametrize("between", ["\u200b", "\x08", "\x1b7", "\x1b[31m", "[31m", "\x1b[>4;2m"])
def test_a_colour_or_an_unseen_letter_in_a_boxed_token_leaves_no_half(between: str) -> None:
    token = f"hf_{KEY}"
    for at in range(len(token)):
        line = f"vllm serve org/m --quantization {token[:at]}{between}{token[at:]} --max-model-len 8192"
        hidden = redact("\n".join(f"│ {line[start : start + 50]:<50} │" for start in range(0, len(line), 50)))[0]
        assert not [KEY[n : n + 6] for n in range(len(KEY) - 5) if KEY[n : n + 6] in hidden], at


PEM = "\n".join(
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        *["MIIEpAIBAAKCAQEA0Z3VS5JJcds3xfnygWyF2sMr1x9QqDvLAbCdEfGhIjKlMn0" + str(n % 10) for n in range(120)],
    ]
)
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.mark.parametrize("margin", ["", *MARGINS[1:]])
def test_a_private_key_of_any_length_goes_and_the_log_behind_it_stays(margin: str) -> None:
    for end in ("", "\n-----END RSA PRIVATE KEY-----"):
        text = "\n".join(margin + line for line in f"{PEM}{end}\n{OOM}".split("\n"))
        hidden, _ = redact(text)
        assert "MIIEpA" not in hidden
        assert "cds3xf" not in hidden
        assert hidden.endswith(margin + OOM)
        assert hidden.count("\n") == text.count("\n")


def test_a_key_block_without_its_end_hides_no_log() -> None:
    text = f"-----BEGIN PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJ\nINFO 11-30 04:31:07 [loader.py:1] loading\n{OOM}"
    assert redact(text)[0] == f"-----BEGIN PRIVATE KEY-----\n{HIDDEN}\nINFO 11-30 04:31:07 [loader.py:1] loading\n{OOM}"


def test_a_log_that_lists_the_newest_first_keeps_no_key() -> None:
    assert "MIIEpA" not in redact("\n".join(reversed([*PEM.split("\n"), "-----END RSA PRIVATE KEY-----"])))[0]


@pytest.mark.parametrize("name", [f"vllm-hf_{KEY}.log", f"logs/api_key={KEY}/rank0.log", f"logs/{KEY[:3]}/password={KEY}.log"])
def test_the_name_of_a_file_holds_no_secret_either(name: str) -> None:
    for found in (contributed("file", name, OOM), without_secrets("file", name, OOM)):
        assert KEY[:12] not in str(found.name)
        assert HIDDEN in str(found.name)


READABLE = """
INFO Using cache directory: /root/.cache/vllm/torch_compile_cache/f3a8b12c9d/rank_0_0/backbone, fx graph cache key: fz4kq2m7x9abcdefghij0123
INFO Added request chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9, cache_key=0a1b2c3d4e5f6071, key_cache=torch.float16, kv_cache_dtype=fp8_e4m3
image: vllm/vllm-openai@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-8f3a1b2c-4d5e-6f70-8192-a3b4c5d6e7f8), commit 0123456789abcdef0123456789abcdef01234567
max_num_batched_tokens=8192, num_tokens=4096, max_tokens: 2048, tokenizer_mode=auto, eos_token='</s>', token_ids=[1, 2, 3], version 0.11.1rc2.dev201+g0123abcd
    - name: HF_TOKEN
      valueFrom:
        secretKeyRef:
          name: hf-secret1
          key: token
  imagePullSecrets:
  - name: regcred1
      - serviceAccountToken:
          expirationSeconds: 3607
          path: token
WARNING: Error while fetching `HF_TOKEN` secret value from your vault. Token is valid (permission: read).
    return cls._from_pretrained(resolved_vocab_files, token=token, use_auth_token=use_auth_token, api_key=self.api_key)
    token: Optional[Union[str, bool]] = None, secret: list[str], api_key: Optional[str] = None,
vllm serve m --api-key $VLLM_API_KEY --ssl-keyfile /etc/ssl/key1.pem --api-key-file /run/secrets/key1
docker run -v /run/secrets/token:/token -e DB_PASSWORD=${DB_PASSWORD:?set it} -p 8000:8000 vllm/vllm-openai
missing key(s) in state_dict: "model.layers.0.mlp.gate_up_proj.weight_scale", sort_key=lambda x: x.priority
post_grad pass 1 of 3; PWD=/workspace/run1; mode: auth; author: jane99; https://github.com/vllm-project/vllm/blob/main/x.py@v0.11.0
"""


def test_what_a_log_is_read_for_stays() -> None:
    assert redact(READABLE) == (READABLE, 0)
