"""Exports of log systems give back their lines, oldest first, each at its place in the export."""

import json
import time

import pytest

from tests.reading.material import evidence, fact, signed

LINES = [
    "(Worker_TP1 pid=512) INFO 11-18 10:00:00 [gpu_worker.py:298] Available KV cache memory: 35.68 GiB",
    "(Worker_TP1 pid=512) ERROR 11-18 10:00:01 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total "
    "capacity of 79.19 GiB of which 1.02 GiB is free.",
]
TEXTS = [line.split("] ", 1)[1] for line in LINES]


def texts(export: str) -> list[str]:
    return [text for _, _, text in signed(export)]


def test_a_config_above_a_log_is_no_export() -> None:
    export = '{\n  "architectures": ["LlamaForCausalLM"],\n  "text": "hello",\n  "content": "x"\n}\n' + LINES[0]
    assert texts(export)[-1] == TEXTS[0]
    assert texts(export)[0] == "{"


def test_docker_json_lines() -> None:
    export = "\n".join(
        json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-11-18T10:00:0{n}Z"}) for n, line in enumerate(LINES)
    )
    assert texts(export) == TEXTS


def test_cloud_logging_pretty_printed_and_newest_first() -> None:
    records = [
        {
            "insertId": str(n),
            "resource": {"labels": {"pod_name": "vllm-0", "container_name": "vllm"}},
            "textPayload": line,
            "timestamp": f"2026-11-18T10:00:0{n}Z",
        }
        for n, line in reversed(list(enumerate(LINES)))
    ]
    found = evidence(json.dumps(records, indent=2))
    assert texts(json.dumps(records, indent=2)) == TEXTS
    assert texts(json.dumps(records)) == TEXTS
    assert found.speakers[0].speaker.group == "vllm.vllm-0"
    assert fact(found, "torch.oom").line == 1 + json.dumps(records, indent=2).split("\n").index(
        f'    "textPayload": {json.dumps(LINES[1])},'
    )


def test_loki_streams() -> None:
    values = [[str(1763460000000000000 + n), line] for n, line in reversed(list(enumerate(LINES)))]
    export = {"status": "success", "data": {"resultType": "streams", "result": [{"stream": {"pod": "vllm-0"}, "values": values}]}}
    assert texts(json.dumps(export)) == TEXTS
    assert texts(json.dumps(export, indent=1)) == TEXTS


def test_datadog_csv_with_a_cell_over_two_lines() -> None:
    export = f'Date,Host,Service,Content\n"2026-01-02","h","vllm","{LINES[1]}\nsecond"\n"2026-01-01","h","vllm","{LINES[0]}"\n'
    assert signed(export)[0] == (4, "Worker_TP1", TEXTS[0])
    assert [(number, text) for number, _, text in signed(export)[1:]] == [(2, TEXTS[1]), (3, "second")]


def test_vllms_own_json_records_name_their_process() -> None:
    record = {
        "asctime": "2026-11-18 10:00:00",
        "levelname": "ERROR",
        "name": "vllm",
        "processName": "Worker_TP1",
        "process": 512,
        "message": "boom",
    }
    assert signed(json.dumps(record)) == [(1, "Worker_TP1", "boom")]


def test_an_export_that_was_cut_off_gives_what_it_holds() -> None:
    export = json.dumps([{"textPayload": line, "timestamp": str(n)} for n, line in enumerate(LINES)], indent=2)
    assert texts(export[: export.rindex('"timestamp"')])[:2] == TEXTS


def test_the_text_that_an_export_was_cut_off_in_is_read_as_far_as_it_goes() -> None:
    export = json.dumps([{"textPayload": line, "timestamp": str(n)} for n, line in enumerate(LINES)])
    assert texts(export[: export.rindex(TEXTS[-1]) + len(TEXTS[-1]) - 4]) == [*TEXTS[:-1], TEXTS[-1][:-4]]
    assert texts('[{"timestamp": "1", "line": "File \\"a.py\\') == ['File "a.py']


@pytest.mark.parametrize("export", ['[{"line":"' + '\\"' * 40_000, '[\n{"line":\n"' + '\\"' * 40_000 + "\nx"])
def test_quotation_marks_without_an_end_are_passed_at_once(export: str) -> None:
    begun = time.process_time()
    texts(export)
    assert time.process_time() - begun < 2


def test_a_quotation_mark_too_many_leaves_the_records_after_it() -> None:
    export = json.dumps([{"labels": {"pod": "p"}, "timestamp": "1", "line": line} for line in LINES], indent=1)
    assert texts(export.replace('"labels"', 'labels"', 1)) == TEXTS


def test_the_cell_that_a_table_was_cut_off_in_is_read_as_far_as_it_goes() -> None:
    assert texts('Date,Message\n"1","a, ""quoted"" line"\n"2","cut, he') == ['a, "quoted" line', "cut, he"]


def test_a_cell_that_is_longer_than_a_table_may_have_is_read_all_the_same() -> None:
    assert texts("Date,Message\n1," + "x" * 140_000) == ["x" * 140_000]


def test_a_traceback_below_its_header_is_its_process_s_in_an_export_too() -> None:
    stamp = "[2026-01-05 10:00:00 TP3] Scheduler hit an exception: Traceback (most recent call last):"
    lines = [stamp, '  File "/sgl/scheduler.py", line 10, in run', "torch.OutOfMemoryError: CUDA out of memory."]
    records = "\n".join(json.dumps({"timestamp": str(n), "pod": "p", "line": line}) for n, line in enumerate(lines))
    assert [label for _, label, _ in signed(records)] == ["TP3", "TP3", "TP3"]


def test_what_stands_below_an_export_is_read_too() -> None:
    export = json.dumps([{"textPayload": LINES[0], "timestamp": "1"}], indent=2) + "\n" + LINES[1]
    assert texts(export) == TEXTS


def test_records_of_an_array_that_lost_its_brackets_are_read_however_many_they_are() -> None:
    rows = [json.dumps({"timestamp": str(n), "line": f"request {n} finished"}) + "," for n in range(3000)]
    assert texts("\n".join([*rows, json.dumps({"timestamp": "9", "line": LINES[1]}) + "]"]))[-2:] == ["request 2999 finished", TEXTS[1]]


def test_documents_one_after_another_are_each_read() -> None:
    document = json.dumps({"data": {"result": [{"values": [["1", LINES[1]]]}]}})
    assert texts("\n".join([document] * 2000)) == [TEXTS[1]] * 2000


def test_an_objects_key_may_be_written_out_and_one_without_a_logs_keys_is_the_line_itself() -> None:
    assert texts(r'{"\u006dessage": "CUDA out of memory", "id": 7}') == ["CUDA out of memory"]
    assert texts('{"text": "CUDA out of memory", "id": 7}') == ['{"text": "CUDA out of memory", "id": 7}']
