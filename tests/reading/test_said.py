"""What people say in their own words, read from how a sentence joins a complaint and a moment."""

import time

import pytest

from bot.reading.complaints import Said
from bot.reading.said import speech_of
from bot.rulebook.load import load_rulebook

SPEECH = speech_of(load_rulebook())


def read(text: str) -> list[Said]:
    [every] = SPEECH.read([f"{text}\n"])
    return every


def said(text: str) -> str | None:
    """The moment that the text says it failed in."""
    named = [one.moment.id.removeprefix("prose.") for one in read(text)]
    return next(
        (name for name in named if name not in ("oom", "failure", "it-failed", "denied", "pressure", "other-fault", "not-then")), None
    )


@pytest.mark.parametrize(
    "text",
    [
        "OOM on two cards",
        "is it enough memory for the weights and 20 users?",
        "will it OOM during graph capture?",
        "loading the model works, then it runs out of GPU memory",
        "I want to serve 200 users, it OOMs with this config",
        "The graphs were captured without problems.",
        "what if it runs out of memory while it loads the weights?",
        "It used to crash in the graph capture.",
        "Topics: weight loading, profiling, KV cache. Yesterday vLLM ran out of memory.",
        "enforce_eager did not help, still CUDA OOM",
        "0.7.2 works fine but 0.8.3 runs out of memory",
        "ollama answers, but vLLM runs out of memory",
        "at first it worked, then we upgraded and now OOM",
        "OOM, and eager mode helps nothing",
        "the cache holds 90k tokens, we need 32768",
        "the KV cache eats the rest even when a tiny model that needs 3 GB runs",
        "It only needs 50 GB during inference. It runs out of memory after all weights are loaded.",
    ],
)
def test_where_nothing_says_when_it_failed_no_moment_is_named(text: str) -> None:
    assert said(text) is None


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("While the graphs are captured it runs out of memory.", "capture"),
        ("It runs out of memory while capturing the graphs.", "capture"),
        ("OOM at startup: initially we used a 7B that answers, then the 70B ran out of memory", "launch"),
        ("OOM in memory profiling, it does not account for the encoder.", "profiling"),
        ("After loading, it goes OOM in the capture of graphs.", "capture"),
        ("It never reaches profiling: the load of the weights explodes with OOM.", "load"),
        ("It dies with OOM before any weights are loaded.", "startup-check"),
        ("Capture finishes, then the first long request kills it with OOM.", "serving"),
        ("The first query works, the second one ends in CUDA OOM", "serving"),
        ("after wake_up everything works, then a request runs out of GPU memory", "serving"),
        ("There is an OOM error. It comes up in process_weights_after_loading.", "load"),
        ("It needs 24.00 GiB KV cache but only has 17.3 GiB", "sizing"),
        ("the node's RAM is exhausted, VRAM has 20 GB left", "host"),
        ("nach dem Laden ist der Speicher voll, und zwar beim Aufzeichnen der Graphen", "capture"),
        ("It can’t allocate the KV cache: CUDA out of memory", "allocation"),
        ("服务跑起来后并发一高就显存不足", "serving"),
        ("vLLM can only keep 21,5k tokens but I asked for 32768", "sizing"),
        ("it crashes 40 % through the shards: out of memory", "load"),
        ("with --enforce-eager it starts, without it CUDA out of memory", "capture"),
        ("enforce_eager solved it for us, otherwise CUDA OOM", "capture"),
        ("with enforce_eager it starts, then it runs out of memory", "launch"),
        ("the second server won't start, it says not enough free memory", "startup-check"),
        ("edit: I was wrong, it runs out of memory while the weights are loaded", "load"),
        ("Starting it failed with a prompt of insufficient VRAM", "launch"),
        ("модель не влезает в видеопамять при загрузке весов", "load"),
        ("сервер работает, но под нагрузкой падает с OOM", "serving"),
        ("для KV-кэша не хватает памяти", "sizing"),
        ("긴 프롬프트를 보내면 CUDA OOM으로 죽습니다", "serving"),
        ("長いプロンプトを送るとOOMで落ちます", "serving"),
        ("I get good answers, then suddenly CUDA out of memory", "serving"),
        ("It works at the beginning and later runs out of memory", "serving"),
        ("The server answers. Then at some point it runs out of memory.", "serving"),
        ("一开始能用，后来就显存不足了", "serving"),
    ],
)
def test_the_moment_that_was_going_on_is_what_a_sentence_says(text: str, moment: str) -> None:
    assert said(text) == moment


def test_of_many_sentences_the_one_that_says_it_best_counts_wherever_it_stands() -> None:
    vague, clear = "It crashed at some load. ", "It runs out of memory while capturing the graphs. "
    assert {said(vague * 40 + clear), said(clear + vague * 40)} == {"capture"}


def test_each_paragraph_is_read_by_itself_and_its_places_are_its_own() -> None:
    texts = ["**Title**  of  this\n", "It went OOM while the graphs are captured.\n", "Thanks!\n", "OOM before any weights are loaded.\n"]
    every = list(SPEECH.read(texts))
    assert [sorted({one.moment.id for one in several}) for several in every][::2] == [[], []]
    assert [texts[n][one.at :][:3] for n in (1, 3) for one in every[n] if one.moment.id == "prose.oom"] == ["OOM", "OOM"]


def test_what_somebody_says_before_he_asks_is_said() -> None:
    assert said("it runs out of memory while it loads the weights, what should I do?") == "load"


def test_in_there_is_where_the_sentence_before_was() -> None:
    assert said("0.8 got through the profile run. 0.9 runs out of memory in there.") == "profiling"


def test_what_sets_something_else_off_says_when_it_failed() -> None:
    assert said("The first request triggers the autotuner and it goes OOM") == "serving"
    assert said("OOM in execute_model -> sampler -> profiler") == "serving"


def test_what_must_come_before_or_else_says_when_it_failed() -> None:
    assert said("the cache must be emptied before wake_up or it goes OOM") == "wake-up"
    assert said("the cache must be emptied before wake_up, it goes OOM") is None


def test_more_asked_for_than_there_is_is_a_shortage_where_something_failed() -> None:
    words = "a request makes the gather ask for 3.8 GiB with {} GiB free{}"
    short, enough, fine = (read(words.format(*rest)) for rest in (("3.2", ", the worker dies"), ("9.2", ", the worker dies"), ("3.2", "")))
    assert ["prose.oom" in [one.moment.id for one in every] for every in (short, enough, fine)] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("How can I avoid OOM during graph capture?", None),
        ("I lowered it to avoid OOM during graph capture", None),
        ("[Bugfix] Avoid OOM during graph capture", "capture"),
        ("fix(worker): prevent OOM during graph capture", "capture"),
        ("[MM] skip the fake videos in memory profiling (OOM on 24 GB)", "profiling"),
    ],
)
def test_a_title_that_averts_a_shortage_reports_it_and_a_wish_does_not(text: str, moment: str | None) -> None:
    assert said(text) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("OOM, it transposes both halves of the gate weights", "load"),
        ("the dummy 4k images alone are an OOM", "profiling"),
        ("OOM as it restores the engine's weights", "wake-up"),
        ("OOM on two cards, it is converted, these weights are large", None),
    ],
)
def test_two_words_name_a_moment_that_neither_names_alone(text: str, moment: str | None) -> None:
    assert said(text) == moment


def test_a_complaint_denied_is_none_but_of_what_failed_instead() -> None:
    assert "prose.denied" in [one.moment.id for one in read("users wait, nothing dies")]
    assert said("graph capture never fails, the first prompt is an OOM") == "serving"
    assert said("It does not crash while it loads the weights but while it captures the graphs.") == "capture"


def test_what_is_never_got_past_is_where_it_failed() -> None:
    assert said("It OOMs by 100 MB. Never gets past model_load.") == "load"
    assert said("It OOMs by 100 MB. I tried a smaller context. Never gets past model_load.") == "load"
    assert said("It gets past model_load.") is None


def test_a_denial_in_one_cell_of_a_row_says_nothing_of_the_next() -> None:
    assert said("| 8192 | not tested | OOM during graph capture |") == "capture"
    assert said("| graph capture | passed | OOM while serving |") == "serving"


def test_the_name_of_a_function_is_said_of_nothing_else() -> None:
    assert said("CUDA out of memory in resume(), it touches a CUDA context") == "wake-up"


def test_requests_that_are_another_moments_own_are_not_served() -> None:
    assert said("warm-up of the decode buckets eats the rest, OOM, prompt buckets were done") == "warm-up"
    assert said("OOM in prefill graph capture") == "capture"


def test_only_so_much_is_a_complaint_and_so_much_is_none() -> None:
    words = "a prompt wants 1.02 GiB, {}900 MB are left"
    assert ["prose.oom" in [one.moment.id for one in read(words.format(only))] for only in ("only ", "")] == [True, False]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("the profile forward wants a 20 GiB tensor", "profiling"),
        ("determine_available_memory → profile_run → vision tower, on a 48 GB card", "profiling"),
        ("kernel_warmup() -> autotune -> profiler", "warm-up"),
        ("the profile forward took 20 seconds", None),
        ("How much does the profile forward want, 20 GiB?", None),
    ],
)
def test_so_much_wanted_and_what_called_what_tell_of_a_failure(text: str, moment: str | None) -> None:
    assert said(text) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("HIP out of memory at 62% of the shards", "load"),
        ("bei Shard 9/11 ist der Speicher voll", "load"),
        ("OOM with three shards per node", None),
        ("out of memory unless I enforce eager", "capture"),
        ("out of memory, enforce eager is no help", None),
    ],
)
def test_how_far_the_weights_were_read_and_what_eager_spares(text: str, moment: str | None) -> None:
    assert said(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "the card can't hold even one sequence",
        "10 MiB short: one full-length request is 4.26 GiB and I have 4.25",
        "it fails due to insufficient KV cache memory during the dummy run",
        "a pool smaller than one sequence, it throws",
    ],
)
def test_less_than_one_request_is_a_cache_too_small(text: str) -> None:
    assert said(text) == "sizing"


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("sorry for the noise, the OOM of my title was a wrong guess", True),
        ("graph capture fails with code 507015, there is 20 GB free", True),
        ("graph capture fails with code 507015, there is 2 GB free", False),
        ("OOM, though 20 GB are free", False),
    ],
)
def test_a_report_taken_back_and_memory_free_in_plenty_deny(text: str, denied: bool) -> None:
    assert ("prose.denied" in [one.moment.id for one in read(text)]) == denied


def test_a_bare_killed_is_what_a_shell_prints() -> None:
    assert said("it ends with one word: Killed.") == "host"
    assert said("the job was killed by a colleague.") is None


def test_a_flag_or_a_variable_is_no_word_of_a_sentence() -> None:
    assert said("OOM with --load-format dummy and VLLM_SLEEP_WHEN_IDLE=1") is None


def test_a_place_is_that_of_the_text_as_given() -> None:
    text = "**Bug**: it   goes *OOM* while `capture_model` runs"
    [oom, capture] = [one for one in read(text) if one.moment.id in ("prose.oom", "prose.capture")]
    assert (text[oom.at :][:3], text[capture.at :][:13]) == ("OOM", "capture_model")


@pytest.mark.parametrize(
    "text", ["oom while loading the kv cache not enough ram gpu free util " * 1500, "oom. " * 10_000, "load " * 10_000]
)
def test_neither_one_long_sentence_nor_many_short_ones_take_long(text: str) -> None:
    began = time.process_time()
    read(text)
    assert time.process_time() - began < 5.0


def kinds(text: str) -> set[str]:
    return {one.moment.id.removeprefix("prose.") for one in read(text)}


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory although cuda graphs are disabled",
        "We ruled out CUDA graphs, we run eager only. CUDA out of memory.",
        "graph capture is skipped, but OOM",
        "CUDA out of memory. Neither loading nor capture are the problem",
        "CUDA-Graphen sind abgeschaltet, trotzdem out of memory",
        "CUDA out of memory même avec enforce_eager, donc ce ne sont pas les graphes",
        "已经关闭cuda graph了,仍然out of memory",
        "без cuda graphs, CUDA out of memory",
        "CUDAグラフは無効ですが、メモリ不足になります",
        "Loading is not where it fails, CUDA out of memory",
        "显存不足不是在加载权重时出现的",
        "메모리 부족은 로딩 때가 아니라 다른 때 납니다",
        "sleep mode is not used, still CUDA out of memory",
        "The requests never arrive, CUDA out of memory",
    ],
)
def test_a_moment_that_is_denied_is_not_when_it_failed(text: str) -> None:
    assert said(text) is None
    assert "oom" in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory captured by Sentry",
        "CUDA out of memory, we capture metrics with Prometheus",
        "CUDA out of memory, screen capture attached",
        "I was woken up at 3am by CUDA out of memory",
        "wake up! CUDA out of memory again",
        "CUDA out of memory when the data loader has 4 workers",
        "CUDA out of memory when loading the dataset",
        "CUDA out of memory with torch profiler enabled",
        "after 2 days of debugging still CUDA out of memory",
        "CUDA out of memory since 3 days",
        "Loading takes 2 minutes, then CUDA out of memory",
        "CUDA out of memory in VAE decode",
        "CUDA out of memory while loading the SDXL checkpoint in ComfyUI",
        "in InvokeAI: CUDA out of memory while loading the checkpoint",
        "our on-call was woken up by CUDA out of memory",
        "CUDA out of memory while training, data loading is slow",
        "mysqld is out of memory while loading the dump",
        "RuntimeError: MPS backend out of memory. Tried to allocate 200 MB on private pool.",
    ],
)
def test_words_that_only_look_like_a_moment_name_none(text: str) -> None:
    assert said(text) is None
    assert "oom" in kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory during loading doesn't happen any more",
        "We no longer see OOM during weight loading",
        "Solved: OOM during graph capture was my own fault, closing",
        "the OOM on graph capture is gone, the log is here",
        "Previously we had OOM in graph capture.",
        "Could CUDA out of memory come from graph capture?",
        "Can weight loading run out of memory when the disk is slow?",
        "CUDA out of memory, could be loading, could be capture, could be serving",
        "Which phase is it if CUDA is out of memory: loading or capture?",
        "I wonder if graph capture could run out of memory on a 4090",
        "The docs say: if you run out of memory during graph capture, use enforce_eager.",
        "add a test which raises CUDA out of memory while loading the weights",
        "context 8192 is below KV cache of 65536 tokens",
        "startup check",
        "what is the startup check?",
        "needed 5 GiB, available 80 GiB KV cache",
        "Free memory 75 GiB of 80 GiB is less than 72 GiB desired",
    ],
)
def test_what_is_over_or_asked_or_enough_is_no_report(text: str) -> None:
    assert said(text) is None
    assert "it-failed" not in kinds(text)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("CUDA out of memory in graph capture, and it's not the loading", "capture"),
        ("We solved the check at startup, now it runs out of memory during graph capture", "capture"),
        ("graph capture fails with CUDA out of memory since 3 days", "capture"),
        ("Can someone help me with OOM during graph capture?", "capture"),
        ("Maybe it is my config: OOM during graph capture", "capture"),
        ("Cuda graphs are disabled, CUDA out of memory comes while loading weights", "load"),
        ("Loading takes 2 minutes and ends in CUDA out of memory", "load"),
        ("enforce_eager doesn't help, it dies of OOM while loading the weights", "load"),
        ("모델 로딩은 끝났고 요청을 처리하는 중에 CUDA out of memory가 납니다", "serving"),
        ("With cuda graphs disabled it serves, but a long prompt is out of memory", "serving"),
        ("CUDA out of memory when the engine is woken up", "wake-up"),
        ("the KV cache is below the context of one request, it stops", "sizing"),
        ("needed 5 GiB KV cache, available 3 GiB, engine stops", "sizing"),
    ],
)
def test_reports_that_are_close_to_those_in_wording_are_still_reports(text: str, moment: str) -> None:
    assert said(text) == moment
