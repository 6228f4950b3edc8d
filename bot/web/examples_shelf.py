"""Three crashes to try the page with, written by us in the formats of real engines."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "examples"


@dataclass(frozen=True, slots=True)
class Example:
    """`slug` names the file and the page; `says` is what a person sees before anything is diagnosed."""

    slug: str
    title: str
    says: str

    @property
    def text(self) -> str:
        """The log, as somebody would paste it."""
        return (FOLDER / f"{self.slug}.log").read_text(encoding="utf-8")


EXAMPLES = (
    Example(
        "capture-on-one-of-eight",
        "One of eight ranks dies late",
        "70B FP8 on eight H100: the weights load, the cache is there, then rank 5 runs out.",
    ),
    Example(
        "context-exceeds-cache",
        "The context does not fit the cache",
        "A 14B model on one 24 GB card, started with its full 131,072 tokens.",
    ),
    Example(
        "card-already-in-use",
        "The card is not free",
        "A second server on an A100 that another process is using.",
    ),
)


def example(slug: str) -> Example | None:
    """The example of that name."""
    return next((one for one in EXAMPLES if one.slug == slug), None)
