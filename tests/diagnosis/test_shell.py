"""Words of a command as a shell takes them."""

import shlex

import pytest

from bot.diagnosis.shell import joined


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["vllm", "serve", "~/models/llama", "--port", "$PORT"], "vllm serve ~/models/llama --port $PORT"),
        (["-v", "${HF_HOME}:/root/.cache"], "-v ${HF_HOME}:/root/.cache"),
        (["--tp", "$(nvidia-smi -L | wc -l)"], '--tp "$(nvidia-smi -L | wc -l)"'),
        (["--api-key", "$KEY and more"], '--api-key "$KEY and more"'),
        (["--hf-overrides", '{"a": "$b"}'], """--hf-overrides '{"a": "$b"}'"""),
        (["a b", "it's"], """'a b' 'it'"'"'s'"""),
    ],
)
def test_what_the_shell_fills_in_stays_the_shells(words: list[str], line: str) -> None:
    assert joined(words) == line


@pytest.mark.parametrize(
    "word", ["$(rm -rf x)", "$(nvidia-smi | sh)", "$(nvidia-smi; reboot)", "$(hostname > x)", "`reboot`", "$(nvidia-smi $(sh))", "$X$(sh)"]
)
def test_a_command_that_may_do_something_stands_quoted_and_is_not_run(word: str) -> None:
    assert joined([word]) == shlex.quote(word)
