"""Small signed values for cookies and forms: what they hold is readable, but not forgeable."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any


def _sent(text: str) -> bytes:
    """What a browser sent, as bytes, whatever it is: a header may hold bytes that are no text."""
    return text.encode("utf-8", "backslashreplace")


def _mac(secret: bytes, purpose: str, body: str) -> str:
    digest = hmac.new(secret, _sent(f"{purpose}\0{body}"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def seal(secret: bytes, purpose: str, values: Mapping[str, Any], seconds: int) -> str:
    """`values` as a cookie text that `unseal` accepts for so many seconds, for the same purpose only."""
    body = json.dumps({**values, "until": int(time.time()) + seconds}, separators=(",", ":"), ensure_ascii=True)
    text = base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")
    return f"{text}.{_mac(secret, purpose, text)}"


def unseal(secret: bytes, purpose: str, sealed: str) -> dict[str, Any] | None:
    """The sealed values; None when forged, damaged, expired or made for another purpose."""
    text, _, mac = sealed.partition(".")
    if not hmac.compare_digest(_mac(secret, purpose, text).encode(), _sent(mac)):
        return None
    values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return values if isinstance(values, dict) and values.get("until", 0) >= time.time() else None


def form_token(secret: bytes, visitor: str) -> str:
    """The token that proves a form was written by us for this visitor's browser."""
    return _mac(secret, "form", visitor)


def same(one: str, other: str) -> bool:
    """Whether two tokens are equal, in constant time."""
    return hmac.compare_digest(_sent(one), _sent(other))
