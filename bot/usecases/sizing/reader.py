"""A line of words as far as it is not understood yet, and the question that was read from it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.rulebook.gpus import Gpus
from bot.rulebook.model_names import ModelNames


@dataclass(slots=True)
class Reader:
    """The text as far as it is not understood yet, and what was."""

    gpus: Gpus
    models: ModelNames
    rest: str
    question: dict[str, Any] = field(default_factory=dict)
    corrections: list[str] = field(default_factory=list)

    def take(self, pattern: str) -> Iterator[re.Match[str]]:
        """Every match as a whole word; each is blanked once it was yielded, so that nothing is read twice."""
        found = list(re.finditer(rf"(?<![\w./-])(?:{pattern})(?![\w/]|\.\d|-\w)", self.rest, re.IGNORECASE))
        for match in found:
            self.blank(match.start(), match.end())
            yield match

    def blank(self, start: int, end: int) -> None:
        """Nobody looks at these letters again."""
        self.rest = self.rest[:start] + " " * (end - start) + self.rest[end:]

    def add(self, name: str, value: str) -> None:
        """Two versions in one question are held against each other; two models are asked back."""
        given = self.question.get(name)
        several = given if isinstance(given, list) else [given]
        if value not in several:
            self.question[name] = value if given is None else [*several, value]

    def put(self, name: str, value: Any) -> None:
        """The first word wins; a second one with another value is said."""
        if self.question.setdefault(name, value) != value:
            self.corrections.append(f"{name} is said twice: {self.question[name]} is used, {value} is not")
