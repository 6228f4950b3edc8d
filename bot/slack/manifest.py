"""The app manifest: one YAML file, the HTTP variant made from it, and the scopes that it asks for."""

import copy
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


def http_manifest(public_url: str) -> dict[str, Any]:
    """The same app over HTTP: request addresses instead of Socket Mode."""
    made = copy.deepcopy(manifest())
    address = public_url.rstrip("/") + "/slack/events"
    made["settings"] |= {"socket_mode_enabled": False}
    made["settings"]["event_subscriptions"]["request_url"] = address
    made["settings"]["interactivity"] |= {"request_url": address}
    for command in made["features"]["slash_commands"]:
        command["url"] = address
    made["oauth_config"]["redirect_urls"] = [public_url.rstrip("/") + "/slack/oauth_redirect"]
    return made
