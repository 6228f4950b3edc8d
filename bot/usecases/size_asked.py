"""Is a question one for sizing, and with which command is it answered: what it names of model, card and context decides, at every door."""

import shlex

NAMES = frozenset({"model", "gpu", "max_model_len"})
"""What makes a question one for sizing."""
LONGEST = 2_000
"""Characters of a question that are read."""


def size_asked(words: str) -> str | None:
    """`oombot size MODEL --gpu H20-96GB --tensor-parallel-size 8`: with all that the words name, MODEL and NAME for what they do not.

    None where they name no model, no card and no context.
    """
    # costly, and asked only for questions
    from bot.usecases.sizing.arguments import BY_NAME
    from bot.usecases.sizing.question import load_sizing
    from bot.usecases.sizing.words import read_words

    read = read_words(load_sizing(), words[:LONGEST]).question
    if not NAMES & read.keys():
        return None
    model = read.get("model") or "MODEL"
    parts = ["oombot", "size", str(model[0] if isinstance(model, list) else model), "--gpu", str(read.get("gpu") or "NAME")]
    for name, value in sorted(read.items()):
        if name not in BY_NAME or name in NAMES - {"max_model_len"}:
            continue
        flag = "--" + name.replace("_", "-")
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, bool):
                parts.append(flag if one else flag.replace("--", "--no-", 1))
            elif not isinstance(one, dict):
                parts += [flag, str(one)]
    return shlex.join(parts)
