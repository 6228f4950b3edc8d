"""What a person's words are mostly said of, asked where no sentence says when memory ran out."""

import pytest
from msgspec import structs

from bot.domain.incident import Contribution
from bot.reading.heard import Heard, stems
from bot.reading.read import read
from bot.rulebook.files import Heard as Row
from bot.rulebook.load import load_rulebook
from tests.bench.hearing import counted

BOOK = load_rulebook()


OTHERS = "do not know what else there is to say"
BOTH = "".join(f" {word[:5]} 20" for word in sorted({*OTHERS.split(), "gpu", "the"}))
COUNTED = [Row("prose.load", 40, f"shard 30{BOTH}"), Row("prose.capture", 40, f"graph 30{BOTH}")]
SMALL = structs.replace(BOOK, heard=COUNTED)


def said(text: str) -> set[str]:
    return {fact.id for fact in read(BOOK, [Contribution("paste", text)]).facts}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (f"the gpu, {OTHERS}", None),
        ("no word of it", None),
        (f"the shards, {OTHERS}", "prose.load"),
        (f"graphs on the GPU, {OTHERS}", "prose.capture"),
        ("graphs on the GPU", None),
        (f"graphs, {OTHERS[:25]}, out of memory, oom", None),
    ],
)
def test_only_what_leaves_little_doubt_is_said(text: str, moment: str | None) -> None:
    assert Heard(SMALL).likeliest(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "메모리 부족", "메모리가 부족합니다. 도와주세요", "GPU 메모리 부족인데 로그가 없습니다", "Ошибка нехватки памяти на второй карте",
        "メモリ不足エラーが出ました。原因がわかりません", "what is graph capture", "profiling run", "warmup done", "OOM trotz enforce_eager",
        "CUDA out of memory in optimizer.step()",
    ],
)  # fmt: skip
def test_a_bare_complaint_and_a_few_words_are_heard_of_nothing(text: str) -> None:
    assert not said(text) & {moment.id for moment in BOOK.moments if moment.telling}


def test_a_long_text_speaks_of_several_things() -> None:
    assert Heard(SMALL).likeliest(f"the shards, {OTHERS} " * 30) is None


def test_a_figure_is_a_figure_and_a_script_without_blanks_is_read_by_pairs() -> None:
    assert stems("Captured 12.5 of 35 graphs: 显存不足") == {"captu", "0", "of", "graph", "显存", "存不", "不足"}


def test_it_is_asked_only_where_no_sentence_says_when() -> None:
    vague = "mtp draft's own graphs are recorded after the target's and push us over on L40S"
    assert {"prose.capture", "prose.it-failed"} <= said(vague)
    assert "prose.capture" not in said(f"{vague}. It dies with OOM while it loads the weights.")


def test_it_is_not_asked_where_a_program_speaks_too() -> None:
    vague = "mtp draft's own graphs are recorded after the target's and push us over on L40S"
    assert "prose.capture" not in said(f"{vague}\nINFO 11-18 09:12:01 [core.py:1] bye")


def test_a_denial_is_never_heard() -> None:
    assert not {name for name in said("is fp8 kv cache worth it on ada? memory isn't an issue for us") if name.startswith("prose.")} - {
        "prose.denied",
        "prose.asks",
    }


def test_sentences_are_added_to_what_was_counted_and_what_was_heard_once_is_left_out() -> None:
    text = counted([Row("prose.load", 2, "shard 2 gpu 1")], [("a shard and a gpu", "weight_loading"), ("a graph", "graph_capture")])
    assert 'moment = "prose.load"\nsentences = 3\nstems = """\na 1 gpu 2 shard 3\n"""' in text
    assert 'moment = "prose.capture"\nsentences = 1\nstems = """\na 1\n"""' in text
