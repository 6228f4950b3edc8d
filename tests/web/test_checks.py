"""What doctor says about the page."""

from typing import Any

import pytest

from bot.settings import Settings
from bot.web.checks import checks

SIGN_IN = {
    "page": "sign-in",
    "slack_client_id": "1",
    "slack_client_secret": "2",
    "public_url": "https://oom.example",
    "secret_key": "k" * 32,
}


@pytest.mark.parametrize(
    ("settings", "ok", "says"),
    [
        ({"host": "0.0.0.0"}, None, "never opens by itself"),
        ({"page": "off"}, None, "off"),
        ({}, True, "open to this machine at http://127.0.0.1:8080/"),
        ({"page": "open", "host": "0.0.0.0"}, True, "requests from this machine only"),
        ({"page": "sign-in"}, False, "SLACK_CLIENT_ID, SLACK_CLIENT_SECRET, OOMBOT_PUBLIC_URL, OOMBOT_SECRET_KEY"),
        (SIGN_IN, True, "https://oom.example"),
        (SIGN_IN | {"secret_key": "short"}, False, "shorter than 32"),
        (SIGN_IN | {"public_url": "http://oom.example"}, False, "unencrypted"),
        (SIGN_IN | {"public_url": "http://localhost:8080"}, True, "http://localhost:8080"),
    ],
)
async def test_doctor_says_what_the_page_is_and_what_it_lacks(settings: dict[str, Any], ok: bool | None, says: str) -> None:
    found = await checks(Settings(**settings))
    worst = next((check for check in found if check.ok is False), found[0])
    assert worst.ok is ok
    assert says in worst.says
    assert ok is True or worst.mend
    assert "short" not in worst.says.replace("shorter", ""), "no secret is echoed"
