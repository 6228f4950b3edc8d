"""A strict Slack for tests and for trying the bot without a workspace: real HTTP, a real WebSocket, Slack's refusals."""

from tests.fakeslack.people import Person
from tests.fakeslack.slack import FakeSlack

__all__ = ["FakeSlack", "Person"]
