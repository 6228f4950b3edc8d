"""Which schema this program speaks, and where its migrations lie. Standard library only: the fast path asks too."""

from pathlib import Path
from urllib.parse import unquote

_PREFIX = "sqlite+aiosqlite:///"

HEAD = "2026_11_30_measured"  # the newest file in migrations/versions; a test compares


def sqlite_file(url: str) -> Path | None:
    """The file that a database URL names; None when it is PostgreSQL's."""
    if not url.startswith(_PREFIX):
        return None
    return Path(unquote(url[len(_PREFIX) :].split("?", 1)[0]))


def migrations_folder() -> Path:
    """The migrations: beside the package in the source tree, inside it in an installed wheel."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "_data" / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"
