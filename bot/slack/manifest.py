"""The app manifest, one YAML file, and the scopes that it asks for."""

from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@cache
def manifest() -> dict[str, Any]:
    """The manifest as it is pasted into Slack for Socket Mode."""
    loaded: dict[str, Any] = yaml.safe_load((files("bot.slack") / "manifest.yaml").read_text(encoding="utf-8"))
    return loaded


def bot_scopes() -> tuple[str, ...]:
    """Every bot scope, the optional ones last."""
    scopes = manifest()["oauth_config"]["scopes"]
    return (*scopes["bot"], *scopes.get("bot_optional", ()))
