"""Sentences that are the same everywhere."""

_ELSEWHERE = {
    "not_in_channel": "I am not in that channel: invite me, and I answer in the thread",
    "channel_not_found": "I am not in that channel: invite me, and I answer in the thread",
    "is_archived": "that channel is archived",
    "thread_not_found": "the message that it answers is gone",
    "cannot_reply_to_message": "that message takes no replies",
    "missing_scope": "the app lacks a scope: reinstall it",
}
HINT = (
    "Paste the log here, or upload it as a file: best is everything from the start of the server to its first error. "
    "I answer with the phase that failed, the rank, its memory budget, and one change to try. “help” lists what else I can do."
)
HINT_HERE = (
    "In this thread I take a log or a file and an answer (“rank 3”, “I don't know”); where you name me, also how the change ended "
    "(“it worked”, “same error”, “error moved”, “wrong diagnosis”), “explain TOPIC” with this incident's numbers, and “help”."
)
HELP = (
    "Paste or upload a crash log, and I answer in the thread.\n"
    "• size MODEL gpu=H100 tp=2 ctx=32k: does it fit? (alone: a form)\n"
    "• history WORDS model:… gpu:… phase:… outcome:…: what was seen before\n"
    "• show D-0187 · forget D-0187 · outcome D-0187 fixed (or moved, same, wrong, undo)\n"
    "• explain TOPIC · stats · settings · settings digest on: a weekly review in this channel\n"
    "• audit: who erased, exported or switched something\n"
    "• watch · unwatch: answer crash logs in this channel without being asked\n"
    "In a thread, say the same with a mention: slash commands do not work there."
)

NOT_OPENED = "I was restarted while a form was to open for you. If it did not open, please ask again."
"""Its trigger lives for three seconds; whether Slack opened it, nobody can look up."""


def for_you_alone(error: str) -> str:
    """Why an answer does not stand where it belongs; `error` is Slack's word."""
    why = _ELSEWHERE.get(error, "not everyone may write there, and I may not" if error.startswith("restricted_action") else "Slack refuses")
    return f"For you alone, since {why} ({error})."
