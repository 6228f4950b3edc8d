"""Makes foreign text inert in Slack, and turns Slack's own escapes back into what the person typed."""

import html
import re
import unicodedata

# What changes how a line is shown without being seen: controls, zero-width marks, bidirectional overrides.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
# Colours of a terminal; exports often lose the escape character itself and keep the rest.
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|(?<![\w\[])\[(?:\d{1,3};)*\d{1,3}m")
_LINK = re.compile(r"<((?:https?|ftp|mailto|tel):[^<>|\s]*)(?:\|([^<>]*))?>")
_REFERENCE = re.compile(r"<([@#!])([^<>|]*)(?:\|([^<>]*))?>")


def visible(text: str) -> str:
    """The text without colours, invisible and direction-changing characters and lone surrogates; newlines and tabs stay."""
    shown = _UNSEEN.sub("", _COLOURS.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))
    return "".join(c for c in shown if unicodedata.category(c) != "Cs")


def escape(text: str) -> str:
    """For mrkdwn and for a message's `text`: `& < >` escaped, so that no mention, link or command is read."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def as_typed(text: str) -> str:
    """Slack's message text as the person typed it: links by their address or label, mentions as `@U1`, entities undone once."""
    linked = _LINK.sub(_link, text)
    named = _REFERENCE.sub(lambda m: {"@": "@", "#": "#", "!": "@"}[m[1]] + (m[3] or m[2]).lstrip("@#"), linked)
    return html.unescape(named)


def _link(match: re.Match[str]) -> str:
    address, label = match[1], match[2]
    # Slack makes links of words that only look like addresses (`vllm.ai` gets http:// in front): the label is what was typed.
    return label or (address.removeprefix("mailto:").removeprefix("tel:"))


def cut(text: str, limit: int) -> str:
    """At most `limit` characters, cut at a line end or a space where one is near, and an ellipsis."""
    if len(text) <= limit:
        return text
    kept = text[: limit - 1]
    for mark in ("\n", " "):
        at = kept.rfind(mark)
        if at > limit * 0.8:
            kept = kept[:at]
            break
    return kept.rstrip() + "…"
