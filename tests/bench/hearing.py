"""Adds the words of labelled sentences to what rules/heard.toml counts: `python -m tests.bench.hearing FILE…`, lines of {"text", "phase"}."""

import argparse
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from bot.reading.heard import stems
from bot.rulebook.files import Heard
from bot.rulebook.load import load_rulebook, rules_folder

MOMENTS = {
    "startup_check": "prose.startup-check", "weight_loading": "prose.load", "profiling": "prose.profiling", "kv_cache_sizing": "prose.sizing",
    "kv_cache_allocation": "prose.allocation", "graph_capture": "prose.capture", "warmup": "prose.warm-up", "serving": "prose.serving",
    "wake_up": "prose.wake-up", "host_memory": "prose.host", "not_oom": "prose.denied", "unknown": "prose.oom",
}  # fmt: skip
HEAD = """# How often a word's beginning was heard in sentences about what: of so many sentences, how many hold each stem.
# Counted by `python -m tests.bench.hearing FILE…`, which adds to it; read by bot/reading/heard.py, last of all.
# prose.denied: memory is not what failed; prose.oom: they do not say when it ran out.
"""


def counted(before: Iterable[Heard], sentences: list[tuple[str, str]]) -> str:
    """The file's text with these (text, phase) added. What was heard but once tells nothing, and may be a name."""
    known = {row.moment: row for row in before}
    rows: dict[str, tuple[int, Counter[str]]] = {}
    for phase, moment in MOMENTS.items():
        texts = [text for text, of in sentences if of == phase]
        row = known.get(moment) or Heard(moment, 0, "")
        given = row.stems.split()
        counts = Counter(dict(zip(given[::2], map(int, given[1::2]), strict=True)))
        counts.update(stem for text in texts for stem in stems(text))
        rows[moment] = row.sentences + len(texts), counts
    often: Counter[str] = sum((counts for _, counts in rows.values()), Counter())
    return HEAD + "".join(
        f'\n[[heard]]\nmoment = "{moment}"\nsentences = {number}\nstems = """\n{_wrapped(counts, often)}\n"""\n'
        for moment, (number, counts) in rows.items()
    )


def _wrapped(counts: Counter[str], often: Counter[str], width: int = 140) -> str:
    lines, line = [], ""
    for stem, count in sorted(counts.items()):
        if often[stem] > 1:
            if len(line) + len(f" {stem} {count}") > width:
                lines.append(line)
                line = ""
            line += f"{' ' if line else ''}{stem} {count}"
    return "\n".join([*lines, line])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    given = [json.loads(line) for file in parser.parse_args().files for line in file.read_text().splitlines()]
    sentences = [(row["text"], row["phase"] if isinstance(row["phase"], str) else row["phase"][0]) for row in given]
    (rules_folder() / "heard.toml").write_text(counted(load_rulebook().heard, sentences))
    print(f"{len(sentences)} sentences added")


if __name__ == "__main__":
    main()
