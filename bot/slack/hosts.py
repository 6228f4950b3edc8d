"""Which addresses a token or an answer may be sent to: Slack's own, or loopback while Slack itself is played on loopback."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.settings import SettingsError, is_loopback

FILE_HOSTS = frozenset({"files.slack.com", "files-origin.slack.com", "slack-files.com"})
RESPONSE_HOSTS = frozenset({"hooks.slack.com"})


@dataclass(frozen=True, slots=True)
class Hosts:
    """Hosts are compared whole, never by suffix; only https on the default port, no user in the address."""

    api_url: str
    loopback: bool

    def may_download(self, url: str) -> bool:
        """May the bot token be sent to this file address?"""
        return self._allowed(url, FILE_HOSTS)

    def may_answer(self, url: str) -> bool:
        """May a message be posted to this response address?"""
        return self._allowed(url, RESPONSE_HOSTS)

    def _allowed(self, url: str, hosts: frozenset[str]) -> bool:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            return False
        if parts.username is not None or parts.password is not None or not parts.hostname or "\\" in url:
            return False
        if self.loopback and is_loopback(parts.hostname) and parts.scheme in ("http", "https"):
            return True
        return parts.scheme == "https" and parts.hostname in hosts and port in (None, 443)


def hosts_of(api_url: str) -> Hosts:
    """Hosts for one SLACK_API_URL; SettingsError when it is neither Slack nor loopback."""
    parts = urlsplit(api_url)
    host = parts.hostname or ""
    base = api_url if api_url.endswith("/") else api_url + "/"
    if is_loopback(host) and parts.scheme in ("http", "https"):
        return Hosts(base, loopback=True)
    if parts.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com")):
        return Hosts(base, loopback=False)
    raise SettingsError(f"SLACK_API_URL is {api_url!r}: it takes an https address of slack.com, or a loopback address for tests")
