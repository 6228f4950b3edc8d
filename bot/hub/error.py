"""The one error of this room."""


class HubError(Exception):
    """A model's files cannot be had. The message says which model, why, and what to do; it never holds a token."""
