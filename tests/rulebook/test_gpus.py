"""Cards by every name, by total, and in running text."""

import time

import pytest

from bot.domain.size import GIB
from bot.rulebook.gpus import Gpus, GpuSpec, load_gpus
from bot.rulebook.load import RulebookError


@pytest.fixture(scope="module")
def gpus() -> Gpus:
    return load_gpus()


def ids(found: GpuSpec | tuple[GpuSpec, ...] | None) -> str | list[str] | None:
    return found.id if isinstance(found, GpuSpec) else None if found is None else [spec.id for spec in found]


def test_a_name_that_no_card_has_finds_nothing_but_names_the_nearest(gpus: Gpus) -> None:
    assert gpus.find("H1000") is None
    assert gpus.nearest("H1000")[0] == "H100-80GB"


@pytest.mark.parametrize(("name", "cards"), [
    ("A100", ["A100-40GB", "A100-80GB"]), ("V100", ["V100-16GB", "V100-32GB"]), ("GH200", ["GH200-96GB", "GH200-144GB"]),
    ("Jetson AGX Orin", ["Orin-64GB", "Orin-32GB"]), ("1g.10gb", ["H100-80GB-MIG-1g.10gb", "A100-80GB-MIG-1g.10gb"]),
])  # fmt: skip
def test_a_shared_name_is_asked_back(gpus: Gpus, name: str, cards: list[str]) -> None:
    assert ids(gpus.find(name)) == cards


@pytest.mark.parametrize(("name", "card"), [
    ("h100", "H100-80GB"), ("NVIDIA H100 80GB HBM3", "H100-80GB"), ("NVIDIA-H100-80GB-HBM3-SHARED", "H100-80GB"), ("p5.48xlarge", "H100-80GB"),
    ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "H100-80GB-MIG-1g.10gb"), ("H100 NVL", "H100NVL-94GB"), ("NVIDIA H200 MIG 2g.35gb", "H200-141GB-MIG-2g.35gb"),
    ("A100 40G", "A100-40GB"), ("A100 (80 GB)", "A100-80GB"), ("A100-SXM4-80GB", "A100-80GB"), ("nvidia-tesla-t4", "T4-16GB"),
    ("4090", "RTX4090-24GB"), ("RTX 4090 48GB", "RTX4090-48GB"), ("NVIDIA GeForce RTX 5090", "RTX5090-32GB"), ("RTX 3090 Ti", "RTX3090-24GB"),
    ("NVIDIA RTX PRO 6000 Blac...", "RTXPRO6000-96GB"), ("b200 192gb", "B200-180GB"), ("DGX Spark", "GB10-128GB"), ("L40s", "L40S-48GB"),
    ("GH200 480GB", "GH200-96GB"), ("AMD Instinct MI300X OAM", "MI300X-192GB"), ("g5.12xlarge", "A10G-24GB"), ("H20-3e", "H20-141GB"),
])  # fmt: skip
def test_one_card_answers_to_many_spellings(gpus: Gpus, name: str, card: str) -> None:
    assert ids(gpus.find(name)) == card


def test_a_modified_card_shares_its_name_and_the_total_decides(gpus: Gpus) -> None:
    assert ids(gpus.decide("NVIDIA GeForce RTX 4090", round(47.37 * GIB))) == "RTX4090-48GB"
    assert ids(gpus.decide("NVIDIA GeForce RTX 4090", round(23.52 * GIB))) == "RTX4090-24GB"
    assert ids(gpus.decide("A100", round(79.25 * GIB))) == "A100-80GB"
    assert ids(gpus.decide("RTX 4090 48GB", None)) == "RTX4090-48GB"
    assert gpus.decide("A100", None) is None
    assert gpus.decide("A100", 20 * GIB) is None


def test_the_total_is_what_torch_reports_not_what_is_sold(gpus: Gpus) -> None:
    card = gpus.by_id["H200-141GB"]
    assert card.total == round(139.8 * GIB)
    assert card.nominal_gb * 10**9 > card.total - 10**10


@pytest.mark.parametrize(
    ("gib", "first"), [(79.19, "H100-80GB"), (184.31, "GB200-186GB"), (23.52, "RTX4090-24GB"), (121.69, "GB10-128GB"), (44.4, "L40S-48GB")]
)
def test_a_printed_total_names_its_candidates_nearest_first(gpus: Gpus, gib: float, first: str) -> None:
    assert gpus.by_total(round(gib * GIB))[0].id == first


def test_a_total_that_nothing_has_names_nothing(gpus: Gpus) -> None:
    assert gpus.by_total(55 * GIB) == ()


def test_a_whole_card_stands_before_slices_of_the_same_size(gpus: Gpus) -> None:
    found = [spec.id for spec in gpus.by_total(round(39.38 * GIB))]
    assert found[0] == "A100-40GB"
    assert "H100-80GB-MIG-3g.40gb" in found


@pytest.mark.parametrize(
    "text",
    [
        "port 4090 is open",
        "chunk of 3090 tokens",
        "GPU-3f2a-a100-b2c4",
        "on node-h100-03",
        "a model of Thor",
        "rank=4090",
        "the 4090 tokens of it",
        "a 3080 Ti",
        "2x RTX 4070 SUPER",
        "RTX 4090 Laptop GPU",
        "my 5060 requests",
    ],
)
def test_figures_and_words_that_only_look_like_a_card_are_none(gpus: Gpus, text: str) -> None:
    assert gpus.mentions(text) == ()


@pytest.mark.parametrize(("text", "card", "count"), [
    ("we run 2x RTX 3090 here", "RTX3090-24GB", 2), ("8xH20", "H20-96GB", 8), ("dual 4090s", "RTX4090-24GB", 2), ("8*H20, 96G", "H20-96GB", 8),
    ("H100 x8", "H100-80GB", 8), ("NVIDIA L40s (48GB VRAM) x 2", "L40S-48GB", 2), ("8×A100-80GB", "A100-80GB", 8), ("A100 (40G each)", "A100-40GB", None),
    ("on a p4d.24xlarge", "A100-40GB", 8), ("|   0  NVIDIA H100 80GB HBM3          On  |", "H100-80GB", None), ("4x4090", "RTX4090-24GB", 4),
    ("GPU 0: NVIDIA GeForce RTX 4090 (UUID: GPU-1)", "RTX4090-24GB", None), ("a 4 H100 box", "H100-80GB", 4), ("two L40S", "L40S-48GB", 2), ("on a 4090", "RTX4090-24GB", None), ("用4张A800部署", "A800-80GB", 4), ("4 卡 4090", "RTX4090-24GB", 4), ("H100 2枚で起動", "H100-80GB", 2),
    ("一张 A100 80G", "A100-80GB", 1), ("双卡4090", "RTX4090-24GB", 2), ("两块RTX 3090", "RTX3090-24GB", 2), ("另一张4090是空的", "RTX4090-24GB", None),
    ("zwei A100 40GB", "A100-40GB", 2), ("a DGX Spark", "GB10-128GB", None),
])  # fmt: skip
def test_a_text_names_cards_and_how_many(gpus: Gpus, text: str, card: str, count: int | None) -> None:
    (found,) = gpus.mentions(text)
    assert ([spec.id for spec in found.specs], found.count) == ([card], count)


def test_a_shared_name_in_a_text_stays_several(gpus: Gpus) -> None:
    (found,) = gpus.mentions("İstanbul: 8x A100 free")
    assert [spec.id for spec in found.specs] == ["A100-40GB", "A100-80GB"]
    assert found.count == 8


def test_a_megabyte_without_any_card_is_scanned_in_a_blink(gpus: Gpus) -> None:
    text = "(EngineCore pid=77) INFO 11-30 04:12:33 [gpu_worker.py:298] Available KV cache memory: 1.00 GiB in 2.3 s\n" * 10_000
    started = time.process_time()
    assert gpus.mentions(text) == ()
    assert time.process_time() - started < 0.5


def test_a_broken_file_names_every_row_that_is_wrong(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "gpus.toml").write_text(
        '[[gpu]]\nid = "A-1GB"\nvendor = "x"\ncompute = "9.0"\nnames = []\nshort = []\nnominal_gb = 1\nfp8 = "none"\nverified = true\n'
        '[[gpu]]\nid = "B-1GB"\nvendor = "x"\ncompute = "9.0"\nnames = []\nshort = []\nnominal_gb = "much"\nfp8 = "none"\nverified = true\n'
    )
    with pytest.raises(RulebookError) as broken:
        load_gpus(tmp_path)
    assert "A-1GB: total_gib is missing" in str(broken.value)
    assert "B-1GB" in str(broken.value)
    assert "nominal_gb" in str(broken.value)


def test_a_folder_without_the_file_says_so(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(RulebookError, match=r"gpus\.toml: no \[\[gpu\]\] rows"):
        load_gpus(tmp_path)


def test_every_card_answers_to_its_own_id_and_device_names(gpus: Gpus) -> None:
    for spec in gpus.specs:
        assert ids(gpus.find(spec.id)) == spec.id
    usual = [spec for spec in gpus.specs if not spec.rare]
    for card, name in ((spec, name) for spec in usual for name in spec.names):
        found = gpus.find(name)
        assert card in (found if isinstance(found, tuple) else (found,)), name
