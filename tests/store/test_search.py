from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.incident import Contribution, Origin
from bot.store.hits import Hits
from bot.store.query import parse
from bot.store.search import Found
from bot.store.store import Store
from tests.store.material import EAGER, LOWER_SEQS, document, on, paste

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Asker:
    team: str = "local"
    channels: frozenset[str] | None = None
    enterprise: str | None = None


EVERYTHING = Asker()
EVERYBODY = (EVERYTHING, Asker("T1"), Asker("T1", frozenset({"C1"})), Asker("T1", frozenset({"C1", "G2"})))


async def ask(store: Store, words: str, who: Asker = EVERYTHING, limit: int = 50, before: str | None = None) -> Found:
    return await store.search(who, parse(words, NOW), limit, before)


async def numbers(store: Store, words: str, who: Asker = EVERYTHING) -> list[int]:
    return [row["number"] for row in (await ask(store, words, who)).rows]


@pytest.fixture
async def filled(store: Store) -> Store:
    """1 graph capture, fixed; 2 serving on another model; 3 sizing, an old version; 4 unknown."""
    await store.append(Origin(), [paste(at=NOW - timedelta(days=40))], document())
    await store.append(
        Origin(),
        [paste("Request failed: CUDA out of memory in the native sampler", at=NOW - timedelta(days=3))],
        on("meta-llama/Llama-3.3-70B-Instruct", "A100-80GB", 4, phase="serving", engine_version="0.22.0", rank={"number": 0}),
    )
    await store.append(
        Origin(),
        [paste("To serve at least one request with max_seq_len 131072, 40.0 GiB KV cache is needed", at=NOW - timedelta(days=2))],
        on("Qwen/Qwen2.5-7B", "RTX4090-24GB", 1, phase="kv_cache_sizing", engine_version="0.9.2", recommendation=LOWER_SEQS),
    )
    await store.append(
        Origin(),
        [paste("engine died", at=NOW - timedelta(days=1))],
        {"phase": "unknown", "verdict": "open", "engine": "unknown", "deployment": {}},
    )
    await store.record_outcome("local", "1", "fixed", "U1", contributions=[Contribution("outcome", "fixed: at Marvin's request")])
    return store


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("nowhere", []),
        ("gpu:h200", []),
        ("gpu:h100 phase:serving", []),
        ("rank:7", []),
        ("version:>=1.0", []),
        ("until:2020-01-01", []),
        ("", [4, 3, 2, 1]),
        ("gpu:h100", [1]),
        ("gpu:H100-80GB", [1]),
        ("model:qwen", [3, 1]),
        ("model:llama-3.3-70b", [2]),
        ("family:qwen2.5", [3]),
        ("phase:graph_capture", [1]),
        ("phase:unknown", [4]),
        ("verdict:certain", [3, 2, 1]),
        ("outcome:fixed", [1]),
        ("outcome:open", [4, 3, 2]),
        ("engine:vllm", [3, 2, 1]),
        ("version:>=0.20", [2, 1]),
        ("version:0.20", [1]),
        ("version:<0.20", [3]),
        ("version:<=0.20", [3, 1]),
        ("version:>0.20", [2]),
        ("rank:3", [3, 1]),
        ("rank:<3", [2]),
        ("tp:8", [1]),
        ("tp:>=4", [2, 1]),
        ("flag:max-num-seqs", [3]),
        ("flag:--gpu-memory-utilization", [2, 1]),
        ("remedy:lower-max-num-seqs", [3]),
        ("error:torch_oom", [3, 2, 1]),
        ("rule:inside-capture-model", [3, 2, 1]),
        ("since:7d", [4, 3, 2]),
        ("since:36h until:2026-11-30", [4]),
        ('"CUDA out of memory"', [2, 1]),
        ("sampler", [2]),
        ("samp*", [2]),
        ("SAMPLER", [2]),
        ("max_seq_len", [3]),
        ("capture_model", [1]),
        ("marvin", [1]),
        ('gpu:h100 phase:graph_capture outcome:fixed version:>=0.20 "capture_model"', [1]),
        ("version:>=0.20 version:<0.22", [1]),
        ("D-0099", []),
        ("D-0002 gpu:h100", []),
        ("d-2", [2]),
        ("D-0002 D-0004", [4, 2]),
        ("D-0001 capture_model", [1]),
    ],
)
async def test_searches(filled: Store, words: str, found: list[int]) -> None:
    assert sorted(await numbers(filled, words), reverse=True) == found
    assert (await ask(filled, words)).count == len(found)


async def test_excluded_are_those_of_the_value_and_those_that_are_not_known_which_is_said(filled: Store) -> None:
    everything = set(await numbers(filled, ""))
    for value in ("phase:serving", "version:0.9", "tp:4", "outcome:fixed", "gpu:4090"):
        those = set(await numbers(filled, value))
        found = await ask(filled, f"-{value}")
        others = {row["number"] for row in found.rows}
        assert (bool(those), bool(others), those & others) == (True, True, set()), value
        assert len(everything - those - others) == sum(int(said.split()[0]) for said in found.unseen), value
    assert (await ask(filled, "-error:torch_oom")).unseen[0].startswith("No incident here has error_kind other than torch_oom.")


@pytest.mark.parametrize("signs", ["(((", '"?!" ***'])
async def test_by_signs_alone_nothing_is_found(filled: Store, signs: str) -> None:
    found = await ask(filled, signs)
    assert (found.rows, found.count) == ([], 0)


async def test_what_was_never_seen_is_answered_with_what_was(filled: Store) -> None:
    found = await ask(filled, "gpu:h1000")
    assert found.rows == []
    assert found.unseen[0].startswith("No incident here has gpu h1000. Seen so far: A100-80GB, H100-80GB, RTX4090-24GB")


async def test_counts_are_of_everything_that_was_found(filled: Store) -> None:
    assert (await ask(filled, "")).counts["phase"] == {"graph_capture": 1, "kv_cache_sizing": 1, "serving": 1, "unknown": 1}
    found = await ask(filled, "model:qwen", limit=1)
    assert (len(found.rows), found.count, found.more) == (1, 2, False)
    assert found.counts["outcome"] == {"fixed": 1, "open": 1}
    assert found.counts["gpu"] == {"H100-80GB": 1, "RTX4090-24GB": 1}


async def test_an_excerpt_is_the_line_that_was_found(filled: Store) -> None:
    [row] = (await ask(filled, "capture_model")).rows
    assert row["excerpt"].endswith("line 3271, in capture_model")


async def test_the_next_page_starts_where_the_last_one_ended(filled: Store) -> None:
    first = await ask(filled, "", limit=2)
    second = await ask(filled, "", limit=2, before="D-0003")
    assert [row["number"] for row in (*first.rows, *second.rows)] == [4, 3, 2, 1]


async def test_the_next_page_of_a_ranked_list_goes_on_in_its_order(store: Store) -> None:
    for times in (1, 4, 2, 5, 3):
        await store.append(Origin(), [paste(" ".join(["sampler"] * times + ["other"] * (10 - times)))], document())
    whole = [row["number"] for row in (await ask(store, "sampler")).rows]
    assert whole == [4, 2, 5, 3, 1]
    pages = [await ask(store, "sampler", limit=2, before=before) for before in (None, "D-0002", "D-0003", "D-0099")]
    assert [[row["number"] for row in page.rows] for page in pages] == [[4, 2], [5, 3], [1], []]


async def test_few_hits_stand_in_the_order_of_relevance(store: Store) -> None:
    await store.append(Origin(), [paste("nccl " * 5)], document())
    await store.append(Origin(), [paste("nccl once, and many other words about many other things " * 3)], document())
    assert await numbers(store, "nccl") == [1, 2]


async def test_a_new_judgement_replaces_the_old_one_in_the_search(store: Store) -> None:
    await store.append(Origin(), [paste()], document())
    await store.judge("local", "1", document(phase="serving", recommendation=EAGER))
    assert await numbers(store, "phase:graph_capture") == []
    assert await numbers(store, "phase:serving flag:enforce-eager capture_model") == [1]
    assert (await ask(store, "")).counts["phase"] == {"serving": 1}


async def test_an_outcome_taken_back_is_no_longer_found(filled: Store) -> None:
    await filled.undo_outcome("local", "1", "U1")
    assert await numbers(filled, "outcome:fixed") == []
    assert 1 in await numbers(filled, "outcome:open")


async def test_out_of_memory_is_found_where_an_exception_is_named_so(store: Store) -> None:
    for said in (
        "torch.cuda.OutOfMemoryError: Tried to allocate 2 GiB",
        "it ran out of memory",
        "we are out of blocks of memory",
        "TileOutOfMemoryErrors",
    ):
        await store.append(Origin(), [paste(said)], document())
    for words in ("out of memory", '"Out of memory"', "OUT OF MEMORY phase:graph_capture"):
        assert sorted(await numbers(store, words)) == [1, 2], words
    assert await numbers(store, "out of memory tried") == [1]
    assert [row["excerpt"] for row in (await ask(store, "out of memory tried")).rows] == [
        "torch.cuda.OutOfMemoryError: Tried to allocate 2 GiB"
    ]


async def test_fields_that_find_nothing_together_say_what_each_finds(filled: Store) -> None:
    (said,) = (await ask(filled, "gpu:h100 phase:serving since:90d")).unseen
    assert said == "No incident has all of it. Found by each field alone: gpu 1, phase 1. Take one away."
    assert (await ask(filled, "gpu:h100")).unseen == ()
    assert (await ask(filled, "nowhere")).unseen == ()


async def test_words_of_two_contributions_count_together(store: Store) -> None:
    await store.append(Origin(), [paste("first half")], document())
    await store.append(Origin(), [paste("second part")], None, into="1")
    assert await numbers(store, "half second") == [1]


@pytest.fixture
async def channels(store: Store) -> Store:
    await store.append(Origin("T1", channel="C1"), [paste("alpha")], document())
    await store.append(Origin("T1", channel="G2", private=True), [paste("alpha beta")], document(phase="serving"))
    await store.append(Origin("T2", channel="C1"), [paste("alpha gamma")], document(phase="warmup"))
    await store.append(Origin("T1"), [paste("alpha")], document())
    return store


@pytest.mark.parametrize("words", ["", "alpha", "gpu:h100", "gpu:h100 alpha", "since:9999d", "channel:G2", "phase:serving", "beta"])
async def test_nobody_sees_a_channel_that_is_not_theirs(channels: Store, words: str) -> None:
    member = Asker("T1", frozenset({"C1"}))
    found = await ask(channels, words, member)
    assert {row["channel"] for row in found.rows} <= {"C1"}
    assert {row["team"] for row in found.rows} <= {"T1"}
    assert found.count == len(found.rows)
    assert "serving" not in found.counts["phase"]
    assert all("G2" not in sentence.split("Seen so far")[1] for sentence in found.unseen)


async def test_a_member_sees_their_channels_and_an_outsider_nothing(channels: Store) -> None:
    assert sorted(await numbers(channels, "alpha", Asker("T1", frozenset({"C1", "G2"})))) == [1, 2]
    assert await numbers(channels, "", Asker("T1", frozenset())) == []
    assert await numbers(channels, "alpha", Asker("T3")) == []
    assert sorted(await numbers(channels, "alpha", Asker("T1"))) == [1, 2, 3]


async def test_many_channels_are_no_other_case(channels: Store) -> None:
    many = frozenset({"C1", *(f"C{n:04d}" for n in range(500))})
    assert await numbers(channels, "alpha gpu:h100", Asker("T1", many)) == [1]


FIELDS = [
    "gpu:h100",
    "gpu:a",
    "model:qwen",
    "version:>=0.20",
    "rank:3 tp:8",
    "outcome:open",
    "outcome:fixed",
    "flag:gpu phase:serving",
    "rule:capture",
]


@pytest.mark.parametrize("words", [*FIELDS, *(f"{words} since:30d" for words in FIELDS), "verdict:certain engine:vllm error:torch_oom"])
async def test_both_ways_that_sqlite_can_go_lead_to_the_same(
    filled: Store, channels: Store, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    assert filled is channels
    led = [await ask(filled, words, who, limit, before) for who in EVERYBODY for limit, before in ((50, None), (1, None), (2, "D-0003"))]
    monkeypatch.setattr(Hits, "_lead", lambda hits: None)
    assert [
        await ask(filled, words, who, limit, before) for who in EVERYBODY for limit, before in ((50, None), (1, None), (2, "D-0003"))
    ] == led


async def test_another_organisation_sees_nothing_of_a_team(store: Store) -> None:
    await store.append(Origin("T1", enterprise="E1", channel="C1"), [paste("alpha")], document())
    assert await numbers(store, "alpha", Asker("T1", None, "E2")) == []
    assert await numbers(store, "alpha", Asker("T1", None, "E1")) == [1]
    assert await numbers(store, "alpha", Asker("T1")) == [1]


async def test_above_ten_thousand_the_count_says_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.search.COUNT_UP_TO", 3)
    for number in range(5):
        await store.append(Origin(), [paste(f"alpha {number}")], document())
    found = await ask(store, "alpha")
    assert (found.count, found.more, found.counts["phase"]) == (3, True, {"graph_capture": 4})
    assert (await ask(store, "")).count == 5


@pytest.mark.parametrize("odd", ["²", "日本語", "🙂", "ﬁle", "İstanbul", "a'b", "x:*", "& | !", "NEAR(a b)", "*", "'", "\\", "é*", "\x00"])
async def test_no_text_breaks_the_search(filled: Store, odd: str) -> None:
    name = await filled.append(Origin(), [paste(f"before {odd} after")], document())
    found = await ask(filled, odd)
    letters = any(character.isalnum() for character in odd)
    assert (int(name.removeprefix("D-")) in [row["number"] for row in found.rows]) or not letters or odd == "x:*"


async def test_many_hits_stand_newest_first_whatever_their_relevance(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.search.COUNT_UP_TO", 3)
    for number in range(5):
        await store.append(Origin(), [paste("alpha " * (9 - number) + "and other words " * number)], document())
    assert await numbers(store, "alpha") == [5, 4, 3, 2, 1]


async def test_a_wide_range_of_versions_is_asked_of_the_rows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.store.hits._MANY", 1)
    for version in ("0.19.0", "0.20.0", "0.21.0", "0.22.0"):
        await store.append(Origin(), [paste("alpha")], document(engine_version=version))
    assert sorted(await numbers(store, "gpu:h100 phase:graph_capture version:>=0.20 alpha")) == [2, 3, 4]
    assert sorted(await numbers(store, "gpu:h100 phase:graph_capture version:<0.20 alpha")) == [1]
