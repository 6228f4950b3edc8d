"""Frames of a traceback, whoever printed them."""

import json

import pytest

from tests.reading.material import evidence

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacity of 23.57 GiB of which 125.00 MiB is free."
PLAIN = f"""Traceback (most recent call last):
  File "/x/vllm/v1/worker/gpu_worker.py", line 350, in determine_available_memory
    self.model_runner.profile_run()
  File "/x/vllm/v1/worker/gpu_model_runner.py", line 3002, in profile_run
    hidden_states = self._dummy_run(self.max_num_tokens)
{OOM}"""


def frames(text: str) -> list[tuple[str, str, int | None, str]]:
    return [(f.function, f.path, f.file_line, f.echo) for f in evidence(text).frames]


RUNNER, WORKER = "vllm/v1/worker/gpu_model_runner.py", "vllm/v1/worker/gpu_worker.py"


@pytest.mark.parametrize(
    "line",
    [
        "See #123 for the OOM at startup from main",
        "#524 originally forced eager at 0.95",
        "#1 Memory (free) at start",
        "## 2. KV cache (pool) in detail",
        "Cell In[3], line 1",
        "vllm/v1/worker/gpu_worker.py:279: UserWarning: deprecated",
        "ray::LLMRayActor 14.05 GiB",
        "gpu_worker.py in version 0.8 loads (again)",
    ],
)
def test_a_line_that_only_looks_like_a_frame_is_none(line: str) -> None:
    assert frames(line) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{RUNNER}:3002: in profile_run\n    self._dummy_run(8192)", ("profile_run", RUNNER, 3002, "self._dummy_run(8192)")),
        (f'  File "{RUNNER}", line 3388 in capture_model', ("capture_model", RUNNER, 3388, "")),
        (f"    capture_model ({RUNNER}:3388)", ("capture_model", RUNNER, 3388, "")),
        (f"  {RUNNER}(3002): profile_run", ("profile_run", RUNNER, 3002, "")),
        (f"{RUNNER} in profile_run at line 3002 (In App)", ("profile_run", RUNNER, 3002, "")),
        (f"#5 Frame 0x7f, for file {RUNNER}, line 3388, in capture_model (self=1)", ("capture_model", RUNNER, 3388, "(self=1)")),
        (
            f"File /opt/{WORKER}:183, in Worker.load_model(self)\n    182 def load_model(self):\n--> 183     self.model_runner.load_model()",
            ("load_model", f"/opt/{WORKER}", 183, "self.model_runner.load_model()"),
        ),
        (
            f"/opt/{WORKER} in load_model(self)\n     63 \n---> 64     self.model = get_model(self.model_config)",
            ("load_model", f"/opt/{WORKER}", None, "self.model = get_model(self.model_config)"),
        ),
        (
            "#0 c10::cuda::CUDACachingAllocator::malloc(void**, signed char, unsigned long) from CUDACachingAllocator.cpp:0",
            ("malloc", "CUDACachingAllocator.cpp", 0, ""),
        ),
        (
            "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f31 in /x/lib/libc10.so)",
            ("Error", "/x/lib/libc10.so", None, ""),
        ),
        ("#6  0x00005 in common_init_from_params(common_params&) ()", ("common_init_from_params", "", None, "")),
        ("ray::RayWorkerWrapper.load_model() (pid=1234, ip=10.0.0.2)", ("load_model", "ray::RayWorkerWrapper", None, "")),
    ],
    ids=["pytest", "faulthandler", "py-spy", "pybind11", "sentry", "gdb-python", "notebook", "old-notebook", "c++", "torch", "gdb", "ray"],
)
def test_a_frame_is_read_whoever_printed_it(text: str, found: tuple[str, str, int | None, str]) -> None:
    assert frames(text) == [found]


def test_pytest_shows_the_source_above_and_the_place_below() -> None:
    text = f"""self = <vllm.v1.worker.gpu_worker.Worker object at 0x7f1>

    def capture_model(self) -> int:
        \"\"\"Raises ValueError: No available memory for the cache blocks.\"\"\"
>       with graph_capture(device=self.device):

{RUNNER}:3388:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def _dummy_run(self, num_tokens):
>       outputs = self.model(num_tokens)
E       {OOM}

{RUNNER}:2800: OutOfMemoryError"""
    read_ = evidence(text)
    assert [(f.function, f.file_line, f.echo) for f in read_.frames] == [
        ("capture_model", 3388, "with graph_capture(device=self.device):"),
        ("_dummy_run", 2800, "outputs = self.model(num_tokens)"),
    ]
    assert [f.line for f in read_.facts if "memory-error" in f.kinds or "allocation-failed" in f.kinds] == [12]


PREFIXES = pytest.mark.parametrize("prefix", ["", "> ", "vllm-1  | ", "[2026-02-24T21:20:20Z] ", "2026-02-24T21:20:20.1234567Z "])


@PREFIXES
def test_a_box_of_rich_is_read_and_the_exception_below_it_stands_on_its_own_line(prefix: str) -> None:
    text = """╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py:279 in        │
│ load_model                                                                   │
│                                                                              │
│   276 │   def load_model(self) -> None:                                      │
│ ❱ 279 │   │   self.model_runner.load_model()                                 │
│                                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯
OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU 0 has a
total capacity of 14.74 GiB of which 82.12 MiB is free."""
    read_ = evidence("\n".join(prefix + line for line in text.split("\n")))
    assert [(f.function, f.file_line, f.echo) for f in read_.frames] == [("load_model", 279, "self.model_runner.load_model()")]
    assert [f.line for f in read_.facts if f.id == "torch.oom"] == [9]


@PREFIXES
def test_the_line_that_a_notebook_points_at_is_the_source_of_its_frame(prefix: str) -> None:
    text = f"File /opt/{WORKER}:183, in Worker.load_model(self)\n    176 def load_model(\n   (...)\n    182 ) -> None:\n--> 183     self.model_runner.load_model()\n{OOM}"
    read_ = evidence("\n".join(prefix + line for line in text.split("\n")))
    assert [(f.function, f.echo) for f in read_.frames] == [("load_model", "self.model_runner.load_model()")]
    assert [f.line for f in read_.facts if f.id == "torch.oom"] == [6]


def test_a_number_that_is_none_of_the_source_s_lines_begins_no_source() -> None:
    read_ = evidence(f"File /opt/{WORKER}:183, in Worker.load_model(self)\n20 CUDA out of memory. Tried to allocate 2.00 GiB.")
    assert [f.line for f in read_.facts if f.id == "torch.oom"] == [2]


@pytest.mark.parametrize(
    "record",
    [
        {"asctime": "2025-01-01 00:00:00", "levelname": "ERROR", "message": "EngineCore failed to start.", "exc_info": PLAIN},
        {"ts": "2025-01-01", "level": "error", "msg": "failed", "exception": {"type": "OutOfMemoryError", "stacktrace": PLAIN}},
        {"@timestamp": "2025-01-01", "message": "failed", "error": {"type": "OutOfMemoryError", "stack_trace": PLAIN}},
        {"timestamp": "2025-01-01", "body": "failed", "attributes": {"exception.stacktrace": PLAIN}},
        {"timestamp": "2025-01-01", "message": PLAIN, "exc_info": PLAIN},
    ],
)
def test_a_record_shows_its_traceback_below_its_message(record: dict[str, object]) -> None:
    read_ = evidence(json.dumps(record))
    assert [f.function for f in read_.frames] == ["determine_available_memory", "profile_run"]
    assert [f.id for f in read_.facts if "allocation-failed" in f.kinds] == ["torch.oom"]


SENTRY = {
    "exception": {
        "values": [
            {
                "type": "OutOfMemoryError",
                "value": "CUDA out of memory. Tried to allocate 224.00 MiB.",
                "stacktrace": {
                    "frames": [
                        {"filename": WORKER, "function": "determine_available_memory", "lineno": 350},
                        {"filename": RUNNER, "function": "profile_run", "lineno": 3002, "context_line": "        self._dummy_run(8192)"},
                    ]
                },
            }
        ]
    }
}


@pytest.mark.parametrize("text", [json.dumps({"message": "failed", **SENTRY}), json.dumps(SENTRY, indent=2)], ids=["a line", "a document"])
def test_frames_may_be_objects(text: str) -> None:
    read_ = evidence(text)
    assert [(f.function, f.file_line, f.echo) for f in read_.frames] == [
        ("determine_available_memory", 350, ""),
        ("profile_run", 3002, "self._dummy_run(8192)"),
    ]
    assert [f.id for f in read_.facts if "allocation-failed" in f.kinds] == ["torch.oom"]


STRUCTLOG = {
    "timestamp": "2025-01-01T00:00:00Z",
    "event": "failed",
    "exception": [
        {
            "exc_type": "OutOfMemoryError",
            "exc_value": "CUDA out of memory. Tried to allocate 224.00 MiB.",
            "frames": [{"filename": WORKER, "lineno": 350, "name": "load_model"}],
        }
    ],
}


@pytest.mark.parametrize("indent", [None, 2])
def test_what_was_raised_may_be_named_as_structlog_names_it(indent: int | None) -> None:
    read_ = evidence(json.dumps(STRUCTLOG, indent=indent))
    assert [f.function for f in read_.frames] == ["load_model"]
    assert [f.line for f in read_.facts if f.id == "torch.oom"] == [7 if indent else 1]


def test_a_frame_s_file_may_be_an_object_of_its_own() -> None:
    record = {"frames": [{"place": {"filename": WORKER}, "lineno": 350, "function": "load_model"}]}
    assert [f.function for f in evidence(json.dumps(record, indent=2)).frames] == ["load_model"]


def test_objects_within_objects_without_end_hold_no_frame() -> None:
    assert frames('{"message": "failed", "frames": 1, "a": ' + '{"a": ' * 900 + "1" + "}" * 901) == []


def test_a_logger_s_own_place_in_a_record_is_no_frame() -> None:
    record = {"message": "hello", "filename": "core.py", "lineno": 700, "name": "vllm.engine", "funcName": "run", "frames": 3}
    assert frames(json.dumps(record)) == []


def test_line_ends_that_are_written_out_are_line_ends() -> None:
    read_ = evidence("ERROR worker failed: " + repr(PLAIN))
    assert [f.function for f in read_.frames] == ["determine_available_memory", "profile_run"]
    assert [f.id for f in read_.facts if "allocation-failed" in f.kinds] == ["torch.oom"]
