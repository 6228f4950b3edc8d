"""Which worker it was: from tags, pids and rank lines; never an invented number."""

from tests.reading.material import evidence

STAMP = "ERROR 11-18 10:00:00 [x.py:1] "


def ranks(text: str) -> dict[str, int | None]:
    return {rank.label: rank.number for rank in evidence(text).ranks.values()}


def test_an_engine_is_no_rank() -> None:
    assert ranks(f"(EngineCore_DP0 pid=7) {STAMP}x\n(APIServer pid=1) {STAMP}x") == {}


def test_a_stage_whose_tensor_size_nobody_says_has_no_number() -> None:
    assert ranks(f"(Worker_PP1_TP0 pid=7) {STAMP}x") == {"Worker_PP1_TP0": None}


def test_behind_ranks_of_which_tags_tell_only_the_least_a_number_stands_with_its_experts_alone() -> None:
    assert ranks(f"(Worker_DP1_TP1 pid=7) {STAMP}x") == {"Worker_DP1_TP1": None}
    assert ranks(f"8x 3090\n(Worker_PP1_TP3 pid=7) {STAMP}x") == {"Worker_PP1_TP3": 7}
    assert ranks(f"(Worker_DP1_TP1_EP9 pid=7) {STAMP}x") == {"Worker_DP1_TP1_EP9": 9}


def test_the_place_in_the_grid_gives_the_global_rank() -> None:
    assert ranks(f"--tensor-parallel-size 4 --pipeline-parallel-size 2\n(Worker_PP1_TP3 pid=7) {STAMP}x") == {"Worker_PP1_TP3": 7}
    assert ranks(f"--tensor-parallel-size 2 --data-parallel-size 2\n(Worker_DP1_TP1 pid=7) {STAMP}x") == {"Worker_DP1_TP1": 3}


def test_a_worker_numbered_within_one_engine_of_several_has_no_global_number() -> None:
    assert ranks(f"--data-parallel-size 2\n(VllmWorker rank=1 pid=7) {STAMP}x") == {"VllmWorker rank=1": None}


def test_a_pid_carries_the_rank_that_its_process_stated() -> None:
    text = (
        "(RayWorkerWrapper pid=71, ip=10.0.0.2) INFO 11-18 10:00:00 [parallel_state.py:1065] "
        "rank 3 in world size 4 is assigned as DP rank 0, PP rank 0, TP rank 3, EP rank 3\n"
        f"(RayWorkerWrapper pid=71, ip=10.0.0.2) {STAMP}x"
    )
    assert ranks(text) == {"RayWorkerWrapper": 3}


def test_a_process_that_passes_on_several_ranks_is_none_of_them() -> None:
    line = "(Worker pid=7) INFO 11-18 10:00:00 [parallel_state.py:1065] rank {0} in world size 2 is assigned as DP rank 0, PP rank 0, TP rank {0}, EP rank {0}\n"
    assert ranks(line.format(0) + line.format(1)) == {}


def test_data_parallel_attention_lives_inside_the_tensor_parallel_ranks() -> None:
    assert ranks("--tp 8 --dp 8 --enable-dp-attention\n[2025-07-02 07:41:58 DP3 TP3] x") == {"DP3 TP3": 3}


def test_attention_is_split_over_the_ranks_where_somebody_says_so_or_replicas_would_be_more_than_the_cards() -> None:
    tagged = '[2025-07-07 19:00:30 DP4 TP4] x\n  File "/w/sglang/srt/managers/tp_worker.py", line 212, in f'
    assert ranks(f"OOM without DP attention\n{tagged}") == {"DP4 TP4": None}
    assert ranks(f"enable_dp_attention=False\n8x H20\n{tagged}") == {"DP4 TP4": None}
    assert ranks(f"vLLM with DP attention, --tensor-parallel-size 2\n(Worker_DP1_TP1 pid=7) {STAMP}x") == {"Worker_DP1_TP1": 3}
    assert ranks(f"OOM when DP attention is enabled\n{tagged}") == {"DP4 TP4": 4}
    assert ranks(f"8x H20\n{tagged}") == {"DP4 TP4": 4}


def test_ray_is_known_by_its_traces() -> None:
    for trace in (
        "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=7)",
        '  File "/x/ray/_private/worker.py", line 1, in get',
    ):
        assert evidence(f"(EngineCore_DP0 pid=6986) {trace}").grid.ray
    assert not evidence(f"(EngineCore_DP0 pid=6986) {STAMP}an array of trays").grid.ray


def test_devices_that_were_renumbered_do_not_give_a_rank() -> None:
    assert evidence("CUDA_VISIBLE_DEVICES=4,5 vllm serve m").grid.devices_set
    assert evidence("CUDA_VISIBLE_DEVICES=4,5\nCUDA_VISIBLE_DEVICES=6,7").grid.devices_set
    assert not evidence("CUDA_VISIBLE_DEVICES=0,1 vllm serve m").grid.devices_set


def test_one_visible_device_means_one_worker() -> None:
    grid = evidence("CUDA_VISIBLE_DEVICES=3 vllm serve m").grid
    assert (grid.world, grid.devices_set) == (1, False)


def test_two_plain_workers_are_not_one() -> None:
    assert not evidence(f"(Worker pid=7) {STAMP}x\n(Worker pid=8) {STAMP}x").grid.single
