"""One call to Slack's Web API: waits that Slack asks for are kept, what can be tried again is, and what is unsure is said to be."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackRequestError
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.slack.installs import Identity, Installs, refusal

TRIES = 5
MOST_LIMITED = 30  # times that one call is told to wait
APART = 1.0  # seconds between calls that Slack held back
LONGEST_WAIT = 300.0  # seconds
POST_SECONDS = 15.0  # for a call that must not be carried out twice; less than `SETTLES`
STALE = frozenset({"token_expired", "invalid_auth", "token_revoked", "account_inactive"})
# Refusals that speak of Slack's own state: the same call may be granted a moment later.
HELD_BACK = frozenset({"ratelimited", "rate_limited"})
# Refusals that another try will not change. Of a token that is no longer good there may be a newer one by then.
FINAL = frozenset({
    "channel_not_found", "not_in_channel", "is_archived", "missing_scope",
    "user_not_found", "user_not_in_channel", "cannot_reply_to_message", "thread_not_found",
    "messages_tab_disabled", "not_allowed_token_type", "ekm_access_denied", "no_permission", "team_access_not_granted",
})  # fmt: skip
PASSING = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"})


class UnsureError(Exception):
    """A call failed in a way that leaves open whether Slack carried it out. `ended`: Slack answered, so it is not still at it."""

    def __init__(self, said: str, *, ended: bool = False) -> None:
        super().__init__(said)
        self.ended = ended


class Calls:
    """Calls of all workspaces; those of one lane wait for its Retry-After. `rest` is entered while one waits."""

    def __init__(self, installs: Installs) -> None:
        self.rest: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
        self._installs = installs
        self._not_before: dict[str, float] = {}

    async def call(
        self,
        who: Identity,
        method: str,
        *,
        sure: bool = False,
        patient: bool = True,
        fence: Callable[[], Awaitable[None]] | None = None,
        **arguments: Any,
    ) -> dict[str, Any]:
        """One Web API call. Waits out 429, retries 5xx and lost connections; SlackApiError when Slack refuses.

        `sure`: the call must not be carried out twice, so UnsureError is raised where it may have been. `fence` is passed right before
        every try: what it raises keeps the call from being made. Not `patient`: where Slack asks to wait it is given up, UnsureError.
        """
        sure = sure or fence is not None
        lane = f"{who.team}:{method}:{arguments.get('channel', '') if method.startswith('chat.post') else ''}"
        attempt = limited = 0
        while attempt < TRIES and limited < MOST_LIMITED:
            attempt += 1
            if not patient and self._wait(lane) > 0:
                raise UnsureError(f"{method}: held back", ended=True)
            await self._turn(lane)
            if fence is not None:
                await fence()
            try:
                async with asyncio.timeout(POST_SECONDS if sure else None):
                    answer = await getattr(self._installs.client(who.token), method.replace(".", "_"))(**arguments)
            except SlackApiError as refused:
                status = _status(refused)
                if status == 429:
                    self._not_before[lane] = max(self._not_before.get(lane, 0.0), time.monotonic() + _retry_after(refused))
                    attempt, limited = attempt - 1, limited + 1
                    continue
                if status < 500:
                    if refused.response.get("error") in STALE:
                        self._installs.doubt(who)
                    raise
                if sure:
                    raise UnsureError(f"{method}: {status}", ended=True) from refused
            except aiohttp.ClientConnectorError:
                if attempt == TRIES:
                    raise UnsureError(f"{method}: Slack cannot be reached", ended=True) from None
            except (aiohttp.ClientError, TimeoutError, SlackRequestError) as lost:
                if sure or attempt == TRIES:
                    raise UnsureError(f"{method}: {type(lost).__name__}") from lost
            else:
                return dict(answer.data)
            await asyncio.sleep(min(0.2 * 2**attempt, 5.0))
        raise UnsureError(f"{method}: still refused after {TRIES} tries")

    async def _turn(self, lane: str) -> None:
        """Waits as long as Slack asked for; those that wait go one after another, or all but one would be refused again."""
        if (wait := self._wait(lane)) > 0:
            self._not_before[lane] += APART
            async with self.rest():
                await asyncio.sleep(wait)

    def _wait(self, lane: str) -> float:
        return self._not_before.get(lane, 0.0) - time.monotonic()


def is_final(refused: SlackApiError) -> bool:
    """Whether another try changes nothing; of `restricted_action` there is one for each way in which a channel can be closed."""
    said = refusal(refused)
    return said in FINAL or said.startswith("restricted_action")


def _status(refused: SlackApiError) -> int:
    """The status of the answer; one without Slack's words on what is wrong is a gateway's, not Slack's."""
    answer = refused.response
    if not isinstance(answer, AsyncSlackResponse):  # the body could not be read
        return 502
    said = answer.data.get("error") if isinstance(answer.data, dict) else None
    if said in HELD_BACK or said in PASSING:
        return 429 if said in HELD_BACK else 503
    return answer.status_code if said or answer.status_code == 429 else max(answer.status_code, 502)


def _retry_after(refused: SlackApiError) -> float:
    headers = {key.lower(): value for key, value in dict(refused.response.headers).items()}
    try:
        return min(float(headers.get("retry-after", 1)), LONGEST_WAIT)
    except ValueError:
        return 1.0
