"""Every way into the bot from Slack, one file each; the first surface that takes an arrival works it."""

from bot.slack.surfaces import (
    buttons,
    changed,
    digest,
    direct_message,
    edits,
    files_gone,
    home,
    joined,
    mention,
    modals,
    reminder,
    revoked,
    shortcuts,
    slash,
    thread,
    twice,
    watch,
)
from bot.slack.surfaces.surface import Surface

SURFACES: tuple[Surface, ...] = (
    direct_message.SURFACE,
    mention.SURFACE,
    thread.SURFACE,
    watch.SURFACE,
    edits.SURFACE,
    files_gone.SURFACE,
    slash.SURFACE,
    shortcuts.SURFACE,
    buttons.SURFACE,
    modals.SURFACE,
    home.SURFACE,
    joined.SURFACE,
    revoked.SURFACE,
    reminder.SURFACE,
    digest.SURFACE,
    changed.SURFACE,
    twice.SURFACE,
)
