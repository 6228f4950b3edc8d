"""What is shipped: the wheel works alone, the locks hold no address, the two commands stand first."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, built without the network."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_rules_migrations_pages_and_manifest_come_with_the_wheel(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for wanted in (
        "bot/_data/rules/facts/torch-oom.toml",
        "bot/_data/rules/gpus.toml",
        "bot/_data/migrations/env.py",
        "bot/slack/manifest.yaml",
        "bot/web/static/page.css",
    ):
        assert wanted in names
    assert not [name for name in names if name.startswith("tests/")]


def test_the_wheel_alone_diagnoses_a_file_and_keeps_it(wheel: Path, tmp_path: Path) -> None:
    package = tmp_path / "package"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(package)
    log = tmp_path / "vllm.log"
    log.write_text(
        "ValueError: Free memory on device (30.12/31.84 GiB) on startup is less than desired GPU memory utilization (0.95, 30.25 GiB).\n"
    )
    paths = os.pathsep.join([str(package), sysconfig.get_paths()["purelib"]])
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "OOMBOT_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path / 'wheel.db'}"}
    code = (
        "import bot, sys; assert bot.__file__.startswith(sys.argv[1]), bot.__file__; from bot.main import run; sys.exit(run(sys.argv[2:]))"
    )
    # -S leaves out the site folder, where this checkout is installed for editing; PYTHONPATH brings the libraries back
    command = [sys.executable, "-S", "-c", code, str(package), "diagnose", str(log), "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["phase"], document["id"]) == ("startup_check", "D-0001")


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_locks_pin_every_line_with_hashes_and_name_no_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    pins = [line for line in text.splitlines() if line and line[0].isalnum()]
    assert all("==" in pin for pin in pins)
    assert text.count("--hash=sha256:") >= len(pins)


def test_the_readme_begins_with_the_two_commands() -> None:
    first = (ROOT / "README.md").read_text().split("```")[1]
    assert [line.split()[:2] for line in first.strip().splitlines()] == [["make", "run"], ["make", "test"]]


def test_no_file_names_a_machine_path_or_a_registry() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    if not tracked:
        pytest.skip("not a git checkout")
    wrong = []
    for name in tracked:
        path = ROOT / name
        if path.suffix in (".png", ".lock") or not path.is_file() or path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        wrong += [
            f"{name}: {needle}"
            for needle in ("/" + "work/", "pypi" + ".org", "files.python" + "hosted", "registry." + "npmjs")
            if needle in text
        ]
    assert wrong == []
