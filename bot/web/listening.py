"""What a start says: where the page is and whom it opens to, or why this address cannot be had."""

import errno
import shutil
import socket
import sys

from bot.settings import Settings, is_loopback

_ALL = ("0.0.0.0", "::", "")  # every address of this machine


def where_it_is(settings: Settings, place: str) -> list[str]:
    """The lines of a start: the address, the history's `place`, and what to do next."""
    mode = settings.page_mode
    if mode == "open":
        return [
            f"oombot is running: {_url(settings)}  (history: {place})",
            f"Paste a log there, or in another terminal: {_command()} diagnose vllm.log",
        ]
    if mode == "sign-in":
        return [
            f"oombot is running: {_url(settings)}  (history: {place})",
            f"Its page is behind Sign in with Slack: {(settings.public_url or '').rstrip('/')}/",
        ]
    why = "OOMBOT_PAGE is off" if settings.page else f"it listens beyond this machine (OOMBOT_HOST is {settings.host})"
    mine = "OOMBOT_PAGE=open opens it to" if is_loopback(settings.host) else "OOMBOT_HOST=127.0.0.1 opens it to"
    return [
        f"oombot is running: {_url(settings)}healthz  (history: {place})",
        f"The page is off, because {why}. OOMBOT_PAGE=sign-in opens it behind Sign in with Slack; {mine} this machine alone.",
        f"In a terminal: {_command()} diagnose vllm.log",
    ]


def _command() -> str:
    """The command as this start was made, where a shell would not find it by its name."""
    started = sys.argv[0]
    return started if "/" in started and started.endswith("/oombot") and shutil.which("oombot") is None else "oombot"


def cannot_listen(settings: Settings, error: OSError) -> str:
    """Why the server got no address, and which setting mends it."""
    said = f"cannot listen on {settings.host}:{settings.port}"
    if isinstance(error, socket.gaierror) or error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
        return (
            f"{said}: {settings.host} is not an address of this machine. "
            "Set OOMBOT_HOST to 127.0.0.1 (this machine alone), 0.0.0.0 (all its addresses) or one of its own."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{said}: this user may not take a port that low. Set OOMBOT_PORT to one from 1024 on, for example OOMBOT_PORT=8080."
    if error.errno == errno.EADDRINUSE:
        free = settings.port + 1 if settings.port < 65_535 else 8080
        return f"{said}: another program has that port. Set OOMBOT_PORT to a free port, for example OOMBOT_PORT={free}."
    return f"{said} ({error.strerror or error}). Look at OOMBOT_HOST and OOMBOT_PORT."


def _url(settings: Settings) -> str:
    host = "127.0.0.1" if settings.host in _ALL else settings.host
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}/"
