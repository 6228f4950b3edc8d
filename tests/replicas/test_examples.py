"""The compose and Kubernetes examples name settings that exist and probe routes that exist, and start two replicas as nobody special."""

from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from bot.settings import Settings, load_settings
from bot.store.engine import read_url
from bot.web.app import UNGATED

ROOT = Path(__file__).parents[2]
SETTINGS = {item.metadata["env"]: item.metadata["secret"] for item in fields(Settings)}
PROBES = {route.path for route in UNGATED}
IN_THE_URL = "OOMBOT_DATABASE_URL"  # its password


@pytest.fixture
def compose() -> Any:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))["services"]


@pytest.fixture
def pod() -> Any:
    deployment, service = yaml.safe_load_all((ROOT / "kubernetes.yaml").read_text(encoding="utf-8"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"]
    assert deployment["spec"]["replicas"] == 2
    return deployment["spec"]["template"]["spec"]


def test_compose_starts_two_replicas_on_one_postgres_with_secrets_from_the_environment(compose: Any) -> None:
    bot = compose["oombot"]
    assert bot["deploy"]["replicas"] == 2
    assert set(bot["environment"]) <= set(SETTINGS)
    for name, value in bot["environment"].items():
        assert not SETTINGS[name] or value.startswith(f"${{{name}:?"), f"{name} is written down"
    assert "${POSTGRES_PASSWORD:?" in bot["environment"][IN_THE_URL]
    assert read_url(bot["environment"][IN_THE_URL].replace("${POSTGRES_PASSWORD:?set it in .env}", "secret")).host in compose
    assert bot["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_compose_asks_a_route_that_exists(compose: Any) -> None:
    command = compose["oombot"]["healthcheck"]["test"]
    address = urlsplit(command[-1].split("'")[1])
    assert address.path in PROBES
    assert str(address.port) in (ROOT / "Dockerfile").read_text(encoding="utf-8").split("EXPOSE ")[1].splitlines()[0]
    compile(command[-1], "healthcheck", "exec")


def test_kubernetes_takes_secrets_from_a_secret_and_the_rest_as_the_bot_reads_it(pod: Any) -> None:
    (bot,) = pod["containers"]
    given = {entry["name"]: entry for entry in bot["env"]}
    assert set(given) <= set(SETTINGS)
    for name, entry in given.items():
        if SETTINGS[name] or name == IN_THE_URL:
            assert entry["valueFrom"]["secretKeyRef"] == {"name": "oombot", "key": name} | (
                {"optional": True} if name in ("SLACK_APP_TOKEN", "SLACK_SIGNING_SECRET") else {}
            )
    assert load_settings({name: entry["value"] for name, entry in given.items() if "value" in entry}, Path("none")).retention_days == 90


def test_kubernetes_probes_routes_that_exist_on_the_port_that_is_open(pod: Any) -> None:
    (bot,) = pod["containers"]
    (port,) = bot["ports"]
    assert port["containerPort"] == Settings().port
    paths = {name: bot[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert set(paths.values()) <= PROBES
    assert paths["livenessProbe"] == "/healthz", "a database that is away is no reason to restart"
    assert paths["readinessProbe"] == "/readyz"
    assert all(bot[name]["httpGet"]["port"] == port["name"] for name in paths)


def test_both_run_as_the_images_own_user_and_write_to_scratch_only(compose: Any, pod: Any) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    user = compose["oombot"]["user"]
    assert f"--uid {user} " in dockerfile
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert str(pod["securityContext"]["runAsUser"]) == user
    (bot,) = pod["containers"]
    assert bot["securityContext"]["readOnlyRootFilesystem"] is compose["oombot"]["read_only"] is True
    assert bot["securityContext"]["capabilities"] == {"drop": ["ALL"]}
