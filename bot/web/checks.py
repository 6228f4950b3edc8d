"""What `oombot doctor` asks of this room: whether the page opens, to whom, and what is missing for it."""

from urllib.parse import urlsplit

from bot.settings import Settings, is_loopback
from bot.usecases.doctor import Check
from bot.web.sign_in import missing

SHORT = 32


async def checks(settings: Settings) -> list[Check]:
    """The page's mode in a sentence, and every setting that its mode needs."""
    mode = settings.page_mode
    where = f"http://{settings.host}:{settings.port}/"
    if mode == "open":
        return [_open(settings, where)]
    if mode == "off":
        mend = "set OOMBOT_PAGE=sign-in, or OOMBOT_HOST=127.0.0.1 to have it on this machine only"
        return [Check("page", None, "off: the server listens beyond this machine, so the page never opens by itself", mend)]
    return [_sign_in(settings), *_key(settings), *_address(settings)]


def _open(settings: Settings, where: str) -> Check:
    if is_loopback(settings.host):
        return Check("page", True, f"open to this machine at {where}")
    return Check("page", True, f"open to requests from this machine only, although the server listens on {settings.host}")


def _sign_in(settings: Settings) -> Check:
    lacks = missing(settings)
    if lacks:
        return Check("page", False, f"behind Sign in with Slack, but {', '.join(lacks)} is not set", f"set {', '.join(lacks)}")
    return Check("page", True, f"behind Sign in with Slack at {settings.public_url}")


def _key(settings: Settings) -> list[Check]:
    if settings.secret_key is None or len(settings.secret_key) >= SHORT:
        return []
    return [Check("page secret", False, f"OOMBOT_SECRET_KEY is shorter than {SHORT} characters", "openssl rand -hex 32 makes one")]


def _address(settings: Settings) -> list[Check]:
    url = urlsplit(settings.public_url or "")
    if not settings.public_url or url.scheme == "https" or is_loopback(url.hostname or ""):
        return []
    says = f"OOMBOT_PUBLIC_URL is {settings.public_url}: sessions would travel unencrypted"
    return [Check("page address", False, says, "serve it over https and set OOMBOT_PUBLIC_URL to that address")]
