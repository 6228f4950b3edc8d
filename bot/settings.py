"""Environment and `.env` into Settings; every setting is documented where it is declared."""

import os
import sys
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any


def data_folder() -> Path:
    """Where this user's programs keep their data, on Linux, macOS and Windows."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local") / "oombot"
    if sys.platform == "darwin":
        return Path.home() / "Library/Application Support/oombot"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "oombot"


def _setting(env: str, default: Any, meaning: str, *, secret: bool = False, span: tuple[int, int] | None = None) -> Any:
    return field(default=default, metadata={"env": env, "meaning": meaning, "secret": secret, "span": span})


def shown_url(url: str) -> str:
    """A URL as it may be shown: without a password, whatever letters that has, and without its query, which may hold one too."""
    scheme, mark, rest = url.partition("://")
    if not mark or scheme.startswith("sqlite"):
        return url.partition("?")[0]
    who, at, where = rest.rpartition("@")
    name, colon, _ = who.partition(":")
    return f"{scheme}://{name.partition('?')[0]}{':***' if colon else ''}{at}{where.partition('?')[0]}"


NO_TOKEN = ""
"""`hf_token` where none may be sent, not even the one that huggingface_hub would find by itself."""


class SettingsError(Exception):
    """A setting that cannot be used: names the variable, the value and what would do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A plain dataclass: every start of the command line pays for its imports."""

    database_url: str = _setting(
        "OOMBOT_DATABASE_URL", "", "sqlite+aiosqlite:///… or postgresql+asyncpg://…; empty: a file in the user's data folder"
    )
    host: str = _setting("OOMBOT_HOST", "127.0.0.1", "address of the page, health, metrics and /slack/events")
    port: int = _setting("OOMBOT_PORT", 8080, "port of the same", span=(1, 65_535))
    page: str = _setting("OOMBOT_PAGE", "", "open | sign-in | off; empty: open on loopback only, else off")
    public_url: str | None = _setting("OOMBOT_PUBLIC_URL", None, "where people reach the page: links in messages, OAuth")
    secret_key: str | None = _setting("OOMBOT_SECRET_KEY", None, "signs sessions, encrypts workspace tokens at rest", secret=True)
    slack_bot_token: str | None = _setting("SLACK_BOT_TOKEN", None, "one workspace: xoxb-…", secret=True)
    slack_app_token: str | None = _setting("SLACK_APP_TOKEN", None, "Socket Mode: xapp-…", secret=True)
    slack_signing_secret: str | None = _setting("SLACK_SIGNING_SECRET", None, "HTTP transport instead of Socket Mode", secret=True)
    slack_client_id: str | None = _setting("SLACK_CLIENT_ID", None, "several workspaces; Sign in with Slack")
    slack_client_secret: str | None = _setting("SLACK_CLIENT_SECRET", None, "several workspaces; Sign in with Slack", secret=True)
    slack_api_url: str = _setting("SLACK_API_URL", "https://slack.com/api/", "where Slack is: a slack.com host, or loopback for tests")
    hf_endpoint: str | None = _setting(
        "HF_ENDPOINT", None, "as huggingface_hub reads it; from .env it gets a token from there only, never the user's own"
    )
    hf_token: str | None = _setting("HF_TOKEN", None, "as huggingface_hub reads it", secret=True)
    hf_hub_offline: str | None = _setting("HF_HUB_OFFLINE", None, "as huggingface_hub reads it")
    retention_days: int = _setting("OOMBOT_RETENTION_DAYS", 90, "evidence is erased after so many days; 0: never", span=(0, 36_500))
    diagnoses_per_person: int = _setting(
        "OOMBOT_DIAGNOSES_PER_PERSON", 60, "messages with a log that one person in Slack has diagnosed within an hour; 0: any number",
        span=(0, 100_000),
    )  # fmt: skip
    diagnoses_per_channel: int = _setting(
        "OOMBOT_DIAGNOSES_PER_CHANNEL", 120, "the same of a whole channel; 0: any number", span=(0, 100_000)
    )

    @property
    def database(self) -> str:
        """The database URL in force."""
        return self.database_url or f"sqlite+aiosqlite:///{data_folder() / 'oombot.db'}"

    @property
    def page_mode(self) -> str:
        """`open`, `sign-in` or `off`. Unset means open when the server listens on loopback only, else off."""
        return self.page or ("open" if is_loopback(self.host) else "off")


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without port, means this machine."""
    from ipaddress import IPv6Address, ip_address

    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        address = ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback


def load_settings(environ: Mapping[str, str] | None = None, dotenv: Path | None = None, *, wrong: list[str] | None = None) -> Settings:
    """Settings from the environment, which wins, a `.env` file beside the caller, and the one of the checkout that this runs from.

    The last is read wherever the command is called, so that `make run` and a command from another folder keep one history.

    SettingsError when one is unusable; with a list `wrong` its sentence is added there, and the default stands: a log can be read
    whatever port the page should have had.
    """
    problems: list[str] = []
    home = _of_checkout(checkout()) if dotenv is None else {}
    beside, own = _dotenv(Path(".env") if dotenv is None else dotenv), os.environ if environ is None else environ
    read = {**home, **beside, **own}
    given: dict[str, Any] = {}
    for item in fields(Settings):
        if text := read.get(item.metadata["env"], "").strip():
            try:
                given[item.name] = _value(item, text)
            except ValueError as error:
                problems.append(str(error))
    names_hub = next((file for file in (own, beside, home) if file.get("HF_ENDPOINT")), own)
    if names_hub is not own:  # a folder that someone sent must not draw the user's token to its hub
        given["hf_token"] = names_hub.get("HF_TOKEN") or NO_TOKEN
    if given.get("page", "") not in ("", "open", "sign-in", "off"):
        problems.append(f"OOMBOT_PAGE is {given.pop('page')!r}: it takes open, sign-in or off")
    if problems and wrong is None:
        raise SettingsError(problems[0])
    if wrong is not None:
        wrong += problems
    return Settings(**given)


def _value(item: "Field[Any]", text: str) -> str | int:
    """A setting as it is used. ValueError says what the variable takes."""
    span = item.metadata["span"]
    if span is None:
        return text
    if not (text.isascii() and text.isdigit() and len(text) < 10 and span[0] <= int(text) <= span[1]):
        raise ValueError(
            f"{item.metadata['env']} is {text!r}: it takes a whole number from {span[0]} to {span[1]}, for example {item.default}"
        )
    return int(text)


def checkout() -> Path | None:
    """The folder of the Makefile, where this runs from a checkout; None for an installed package."""
    folder = Path(__file__).resolve().parent.parent
    return folder if (folder / "Makefile").is_file() and (folder / "pyproject.toml").is_file() else None


def _of_checkout(folder: Path | None) -> Mapping[str, str]:
    """What its `.env` says; a database named by a relative path is that of this folder, wherever one stands."""
    told = dict(_dotenv(folder / ".env")) if folder else {}
    scheme, mark, path = told.get("OOMBOT_DATABASE_URL", "").partition(":///")
    if folder and mark and scheme.startswith("sqlite") and path and not path.startswith((":", "file:")) and not Path(path).is_absolute():
        told["OOMBOT_DATABASE_URL"] = f"{scheme}:///{folder / path}"
    return told


def _dotenv(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    from dotenv import dotenv_values

    return {name: value for name, value in dotenv_values(path).items() if value is not None}
