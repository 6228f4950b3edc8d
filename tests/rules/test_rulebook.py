"""The rulebook as it is shipped has no problem; a broken one has all of its problems named at once."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from bot.rulebook.book import Rulebook
from bot.rulebook.check import Problem, problems
from bot.rulebook.load import RulebookError, load_rulebook
from bot.usecases.check_changes import changes
from bot.usecases.check_examples import cases, faults
from bot.usecases.check_families import family_cases, family_faults
from bot.usecases.check_rules import check_rules
from bot.usecases.sizing.question import load_sizing

BROKEN = """
[[release]]
version = "0.9.1"
markers = ["core.py"]
[[release]]
version = "0.8.0"

[[fact]]
id = "a.no-anchor-in-example"
title = "x"
kinds = ["budget"]
anchor = ["needle"]
pattern = '''took\\ (?P<weights_bytes>\\d+)'''
fields = { weights_bytes = "gib" }
  [[fact.example]]
  line = '''Model took 12'''
  expect = { weights_bytes = "13", nothing = 1 }

[[fact]]
id = "a.tiring"
title = "x"
kinds = []
anchor = ["begin"]
pattern = '''begin\\ (?:(?:[a-z]+-)*)+!'''
vllm = "newest"
  [[fact.example]]
  line = '''begin a-b-!'''

[[fact]]
id = "a.field"
title = "x"
kinds = []
below = { size = "room" }
anchor = ["("]
pattern = '''oops'''
fields = { size = "kilograms" }

[[fact]]
id = "a.secret"
title = "x"
kinds = []
anchor = ["HF"]
  [[fact.example]]
  line = '''HF hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567'''
  [[fact.counterexample]]
  line = '''x'''
  instead = "a.gone"

[[mark]]
fact = "a.nowhere"
then = "serving"

[[question]]
id = "a.question"
text = "?"
would_change = "phase"
any = [{ kind = "tried-gone" }, { kind = "budget", where = { weigths_bytes_min = 4 } }]
  [question.how]
  shell = "true"

[[naming]]
kind = "small"
of = "model"
pattern = "(?i)tiny"
example = "Qwen3-0.6B"

[[word]]
means = "lack"
says = ["too-small"]

[[moment]]
id = "a.moment"
title = "x"
kinds = []
says = ["Too small"]
pairs = [["grahps", "lack"]]
begins_after = "a.later"

[[charge]]
term = "weights"
vllm = ">=0.9"
[[charge]]
term = "graphs"
vllm = "lately"

[[argument]]
name = "ctx"
kind = "int"
flags = ["-c"]
same_as = "length"
engines = ["llama"]
spelled = { sglagn = "--ctx" }

[[argument]]
name = "context"
kind = "int"
keys = ["-c"]

[[remedy]]
id = "a.change"
phases = ["serving"]
value = "half-of-it"
because = "{weights} of {weigths}, {oom_tried}, {ctx}."
costs = "x"
disproved_by = "x"
same_step = ["a.other"]

[[topic]]
id = "a.topic"
title = "x"
paragraphs = []
numbers = ["weights_bytes", "weigths_bytes"]

[[launch]]
engines = ["any"]
command = "serve"
starts = ["serve"]
vllm = ">=3"

[[printed]]
fact = "a.tiring"
field = "weights_bytes"
vllm = ">=0"

[[redaction]]
id = "hub"
title = "a hub token"
anchor = "hf_"
pattern = '''(?P<secret>hf_[A-Za-z0-9]{16,})'''
  [[redaction.example]]
  line = '''hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567'''
  expect = { secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567" }
"""

UNCOMPILABLE = """
[[fact]]
id = "a.uncompilable"
title = "x"
kinds = []
figure = ['took', '(took']
anchor = ["oops"]
pattern = '''(oops'''
  [[fact.example]]
  line = "oops took"
[[wording]]
fact = "a.uncompilable"
pattern = '''(wording'''
vllm = ">=0.9"
example = ["x"]
[[naming]]
kind = "small"
of = "model"
pattern = "(tiny"
example = "x"
[[vocabulary]]
sizes = [1]
pattern = "(words"
example = "x"
[[unspoken]]
id = "a.command"
title = "x"
pattern = "(sudo"
  [[unspoken.example]]
  line = "sudo"
[[release]]
version = "0.9.1"
"""


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Rulebook:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "all.toml").write_text(BROKEN)
    return load_rulebook(folder)


@pytest.fixture(scope="module")
def found(broken: Rulebook) -> list[Problem]:
    return [*problems(broken), *changes(broken)]


def test_the_shipped_rulebook_has_no_problem() -> None:
    assert [str(problem) for problem in (*problems(load_rulebook()), *changes(load_rulebook()))] == []


@pytest.mark.parametrize(
    "says",
    [
        "a.no-anchor-in-example: no anchor stands in its example",
        "a.no-anchor-in-example: an example expects nothing, which is no group",
        "a.tiring: the pattern takes more than",
        "a.tiring: 'newest' is no range of versions",
        "a.field: below names room, which is none of its fields",
        "a.field: the field size is no group of the pattern",
        "a.field: size = 'kilograms' is no kind of field",
        "a.field: no example",
        "a.secret: an example holds what looks like a hub token",
        "a.secret: a counterexample names 'a.gone', which no file has",
        "serving: names the fact 'a.nowhere', which no file has",
        "a.question: names the kind 'tried-gone', which no fact has and nothing derives",
        "a.question: an answer to it would not be read",
        "a.question: 'weigths_bytes' is no field of budget; known: weights_bytes",
        "a.moment: pairs 'grahps', which is no meaning and no moment",
        "a.moment: begins after 'a.later', which is no moment",
        "a.moment: 'Too small' stands under lack already",
        "a.moment: no example",
        "(?i)tiny: does not match its example 'Qwen3-0.6B'",
        "weights: no row for v1 in 0.8.0",
        "graphs: 'lately' is no range of versions",
        "ctx: is the same as 'length', which is no argument",
        "ctx: there is no engine 'llama'",
        "ctx: there is no engine 'sglagn'",
        "context: '-c' is ctx's already",
        "a.change: is the same step as 'a.other', which is no remedy",
        "a.change: {weigths} is no figure; known: ",
        "a.change: value = 'half-of-it' is counted by no function",
        "a.topic: 'weigths_bytes' is no figure; known: ",
        "serve: there is no engine 'any'",
        "serve: no known release is within '>=3'",
        "a.tiring.weights_bytes: that fact has no such field",
        "0.8.0: stands after 0.9.1",
        "0.9.1: 'core.py' is no source line",
    ],
)
def test_a_broken_rulebook_says_all_that_is_wrong(found: list[Problem], says: str) -> None:
    assert any(says in str(problem) for problem in found), says


def test_what_is_known_is_no_problem(found: list[Problem]) -> None:
    said = " ".join(problem.says for problem in found)
    assert "{weights} is no figure" not in said
    assert "{oom_tried} is no figure" not in said
    assert "{ctx} is no figure" not in said
    assert "pairs 'lack'" not in said
    assert "'weights_bytes' is no" not in said


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("rule", "id = 'a'\nphase = 'startup_chek'\nweight = 'hint'"),
        ("mark", "fact = 'a'\nthen = 'startup_chek'"),
        ("mark", "fact = 'a'\nthen = 'startup_check'\nalso = ['startup_chek']"),
        ("outer", "id = 'a'\nphase = 'startup_chek'\nany = []"),
        ("outer", "id = 'a'\nphase = 'startup_check'\nany = []\nbare = 'startup_chek'"),
        ("outer", "id = 'a'\nphase = 'startup_check'\nany = []\n[[outer.inside]]\nphase = 'startup_chek'"),
        ("ruled_out", "id = 'a'\ntitle = 'x'\nphases = ['startup_chek']\nany = []"),
        ("remedy", "id = 'a'\nphases = ['startup_chek']\nbecause = 'x'\ncosts = 'x'\ndisproved_by = 'x'"),
        ("remedy", "id = 'a'\nphases = ['serving']\ndirection = 'startup_chek'\nbecause = 'x'\ncosts = 'x'\ndisproved_by = 'x'"),
        ("avoid", "flag = '-a'\ndirection = 'lower'\nphases = ['startup_chek']\nbecause = 'x'"),
        ("avoid", "flag = '-a'\ndirection = 'startup_chek'\nphases = ['serving']\nbecause = 'x'"),
        ("question", "id = 'a'\ntext = 'x'\nhow = {}\nwould_change = 'startup_chek'"),
    ],
)
def test_a_phase_or_direction_that_is_none_is_refused(tmp_path: Path, table: str, row: str) -> None:
    (tmp_path / "one.toml").write_text(f"[[{table}]]\n{row}\n")
    with pytest.raises(RulebookError, match=rf"one\.toml: \[\[{table}\]\] .*'startup_chek'"):
        load_rulebook(tmp_path)


def test_each_problem_names_its_file_and_rule(found: list[Problem]) -> None:
    assert {problem.file for problem in found} == {"all.toml"}
    assert all(problem.rule.startswith("[[") for problem in found)


def test_only_the_problems_of_what_is_named_are_said(broken: Rulebook) -> None:
    assert {row["name"] for row in check_rules(broken, names=["a.secret"]).document["checks"]} == {
        "all.toml: [[fact]] a.secret",
        "rulebook",
    }
    changed = [row["says"].split()[0] for row in check_rules(broken, names=["a.change"]).document["checks"]]
    assert changed == ["is", "{weigths}", "value", "3"]
    assert [row["says"] for row in check_rules(broken, names=["other.toml"]).document["checks"]] == [
        "0 examples of other.toml were read as they say"
    ]


def test_what_does_not_compile_is_said_whatever_is_named_and_no_example_is_read(tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(UNCOMPILABLE)
    (tmp_path / "other.toml").write_text(
        "[[fact]]\nid = 'b'\ntitle = 'x'\nkinds = []\nanchor = 'b'\n  [[fact.example]]\n  line = 'oops b'\n"
    )
    *rows, rulebook = check_rules(load_rulebook(tmp_path), names=["b"]).document["checks"]
    assert [(row["name"], row["says"].partition(":")[0]) for row in rows] == [
        ("all.toml: [[fact]] a.uncompilable", "'(oops' does not compile"),
        ("all.toml: [[unspoken]] a.command", "'(sudo' does not compile"),
        ("all.toml: [[fact]] a.uncompilable", "'(took' does not compile"),
        ("all.toml: [[wording]] a.uncompilable", "'(wording' does not compile"),
        ("all.toml: [[naming]] small", "'(tiny' does not compile"),
        ("all.toml: [[vocabulary]] (words", "'(words' does not compile"),
    ]
    assert rulebook["says"] == "6 problems"


def test_a_family_s_example_that_needs_other_bytes_is_a_problem_of_its_file() -> None:
    sizing = load_sizing()
    (case, *_) = (case for case in family_cases(sizing) if case.table == "example")
    wrong = replace(case, example=msgspec.structs.replace(case.example, request_bytes=1))
    assert family_faults(sizing, case) == []
    assert family_faults(sizing, wrong)[0].endswith(" bytes, not 1")
    assert wrong.file == f"models/{case.family}.toml"


def test_an_example_that_is_read_otherwise_is_a_fault_of_its_rule(broken: Rulebook) -> None:
    case = next(c for c in cases(broken) if c.rule == "a.no-anchor-in-example")
    assert faults(broken, case) == ["does not read its own example 'Model took 12'"]


def test_two_rules_that_claim_one_line_are_named(tmp_path: Path) -> None:
    rule = "[[fact]]\nid = '{id}'\ntitle = 'x'\nkinds = ['torch_oom', 'budget']\nanchor = ['took']\npattern = '''took\\ (?P<kv_cache_bytes>\\d+)'''\nfields = {{ kv_cache_bytes = 'gib' }}\n  [[fact.example]]\n  line = 'took 4'\n  expect = {{ kv_cache_bytes = '5' }}\n"
    (tmp_path / "two.toml").write_text(rule.format(id="a.one") + rule.format(id="a.two"))
    book = load_rulebook(tmp_path)
    (first, _) = [faults(book, case) for case in cases(book)]
    assert first == [
        f"captures kv_cache_bytes = {4 * 2**30}, not {5 * 2**30}, in 'took 4'",
        "and a.two both call 'took 4' torch_oom",
        "and a.two both read kv_cache_bytes from 'took 4'",
    ]


def test_a_file_that_is_no_rule_file_stops_everything_with_every_problem(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text("[[fact]]\nid = 'a'\n")
    (tmp_path / "two.toml").write_text("[[facts]]\nid = 'a'\n[[release]]\nversion = '0.9.1'\n")
    (tmp_path / "three.toml").write_text("[[fact")
    with pytest.raises(RulebookError) as caught:
        load_rulebook(tmp_path)
    assert len(caught.value.problems) == 3


def test_a_changed_file_takes_effect_at_the_next_start_though_its_time_and_size_stay(tmp_path: Path) -> None:
    def read() -> tuple[str, str]:
        says = "from bot.rulebook.load import *; book = load_rulebook(Path('.')); print(book.releases[0].version, book.digest)"
        root = str(Path(__file__).parents[2])
        told = subprocess.run(
            [sys.executable, "-c", says], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, capture_output=True, text=True
        )
        version, digest = told.stdout.split()
        return version, digest

    def write(version: str) -> None:
        (tmp_path / "one.toml").write_text(f"[[release]]\nversion = '{version}'\n")
        os.utime(tmp_path / "one.toml", ns=(10**18, 10**18))

    write("0.9.1")
    before = read()
    write("0.9.2")
    after = read()
    assert (before[0], after[0]) == ("0.9.1", "0.9.2")
    assert before[1] != after[1]
    assert [path.name for path in tmp_path.iterdir()] == ["one.toml"]


def test_a_clean_rulebook_is_one_row_that_says_how_much_was_read(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        "[[fact]]\nid = 'a'\ntitle = 'x'\nkinds = []\nanchor = ['took']\n  [[fact.example]]\n  line = 'took 4'\n[[release]]\nversion = '0.9.1'\n"
    )
    document = check_rules(load_rulebook(tmp_path)).document
    assert document["ok"] is True
    assert [c["says"] for c in document["checks"]] == ["1 examples of 1 messages and 0 signatures were read as they say"]


def test_no_redaction_pattern_is_tired_by_a_long_word() -> None:
    from bot.reading.redact import redact

    begin = time.process_time()
    redact("docker run -e HF_TOKEN " + "a-" * 20_000 + "token=abcdef123456")
    assert time.process_time() - begin < 2


def test_the_page_for_newcomers_shows_a_rule_that_works(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "rules" / "README.md").read_text()
    shown = page.split("```toml\n", 1)[1].split("```", 1)[0]
    (tmp_path / "shown.toml").write_text(shown.replace('instead = "vllm.graph-estimate"', ""))
    book = load_rulebook(tmp_path)
    assert [fault for case in cases(book) for fault in faults(book, case)] == []
