"""Modals: the sizing form, the log form, and one sentence while something is under way."""

import re
from collections.abc import Mapping
from typing import Any

from bot.slack.render.blocks import Block, line, option, rich
from bot.slack.render.escape import cut, visible
from bot.slack.render.limits import fit_view
from bot.slack.render.sizing import sizing_message

SIZING = "sizing"
LOG = "log"
DTYPES = ("auto", "fp8", "bf16")
View = dict[str, Any]


def sizing_form(meta: str, words: str = "") -> View:
    """The sizing question; `words` fills it with an earlier one."""
    known = _known(words)
    blocks = [
        _text("model", "Model", "Hugging Face id, for example Qwen/Qwen3-32B", known.get("model")),
        _text("gpu", "GPU", "H100, A100-40GB, RTX4090 …", known.get("gpu")),
        _text("tp", "GPUs (tensor parallel)", "1", known.get("tp"), optional=True),
        _text("ctx", "Context, tokens", "32k; empty: the model's own", known.get("ctx"), optional=True),
        _select("kv", "KV cache dtype", DTYPES, known.get("kv") or "auto"),
        _text("more", "Anything else", "--max-num-seqs 64 --gpu-memory-utilization 0.9 …", known.get("more"), optional=True),
    ]
    return _form(SIZING, "Does it fit?", "Work it out", blocks, meta)


def log_form(meta: str) -> View:
    """A log as a file (a text field takes 3,000 characters only), and where to answer."""
    blocks: list[Block] = [
        {
            "type": "input",
            "block_id": "log",
            "optional": True,
            "label": _plain("Log files"),
            "element": {"type": "file_input", "action_id": "files", "max_files": 10},
        },
        _text("text", "Or its first error", "CUDA out of memory …", None, optional=True, multiline=True),
        {
            "type": "input",
            "block_id": "channel",
            "optional": True,
            "label": _plain("Answer in (empty: a direct message)"),
            "element": {
                "type": "conversations_select",
                "action_id": "channel",
                "filter": {"include": ["public", "private"], "exclude_bot_users": True},
            },
        },
    ]
    return _form(LOG, "Diagnose a crash", "Read it", blocks, meta)


def notice_view(said: str) -> View:
    """One sentence in a modal."""
    return {
        "type": "modal",
        "callback_id": "notice",
        "title": _plain("oombot"),
        "close": _plain("Close"),
        "blocks": fit_view([rich(line(cut(visible(said), 2_000) or "–"))]),
    }


def sizing_view(document: Mapping[str, Any], words: str) -> View:
    """The answer in a modal, with a channel to share it in. Buttons for tables stay native: only the sharing row changes."""
    blocks = [_modal(block) for block in sizing_message(document, words)[0] if block["type"] != "actions"]
    return {
        "type": "modal",
        "callback_id": "sizing_answer",
        "title": _plain("Does it fit?"),
        "close": _plain("Close"),
        "blocks": fit_view(blocks),
    }


def words_of_form(values: Mapping[str, Any]) -> str:
    """The form as one sizing question in words, the same language as `/oom size`."""
    parts = [str(values.get("model") or "").strip()]
    parts += [f"{name}={value}" for name in ("gpu", "tp", "ctx") if (value := str(values.get(name) or "").strip().replace(" ", "-"))]
    if values.get("kv") not in (None, "", "auto"):
        parts.append(f"kv={values['kv']}")
    parts.append(str(values.get("more") or "").strip())
    return " ".join(part for part in parts if part)


def _known(words: str) -> dict[str, str]:
    """The same backwards: what is no field of the form goes into the last one."""
    known = {name: found[1] for name in ("gpu", "tp", "ctx", "kv") if (found := re.search(rf"(?:^|\s){name}=(\S+)", words))}
    rest = re.sub(r"(?:^|\s)(?:gpu|tp|ctx|kv)=\S+", " ", words).split()
    if rest and rest != ["-"]:
        known |= {"model": rest[0], "more": " ".join(rest[1:])}
    return known


def _form(callback: str, title: str, submit: str, blocks: list[Block], meta: str) -> View:
    return {
        "type": "modal",
        "callback_id": callback,
        "title": _plain(title),
        "submit": _plain(submit),
        "close": _plain("Cancel"),
        "private_metadata": meta,
        "blocks": fit_view(blocks),
    }


def _text(name: str, label: str, hint: str, value: str | None, *, optional: bool = False, multiline: bool = False) -> Block:
    element: Block = {
        "type": "plain_text_input",
        "action_id": name,
        "placeholder": _plain(hint),
        "multiline": multiline,
        "max_length": 3_000,
    }
    if value:
        element["initial_value"] = value[:3_000]
    return {"type": "input", "block_id": name, "label": _plain(label), "optional": optional, "element": element}


def _select(name: str, label: str, values: tuple[str, ...], chosen: str) -> Block:
    options = [option(value, value) for value in (values if chosen in values else (*values, chosen))]
    element: Block = {
        "type": "static_select",
        "action_id": name,
        "options": options,
        "initial_option": next(o for o in options if o["value"] == chosen),
    }
    return {"type": "input", "block_id": name, "label": _plain(label), "element": element}


def _modal(block: Block) -> Block:
    """Tables are not allowed in a modal: their rows as preformatted lines."""
    if block["type"] != "table":
        return block
    rows = [[str(cell["text"]) for cell in row] for row in block["rows"]]
    width = max(len(row[0]) for row in rows)
    text = "\n".join(f"{row[0]:<{width}}  {'  '.join(f'{cell:>10}' for cell in row[1:])}" for row in rows)
    return rich({"type": "rich_text_preformatted", "elements": [{"type": "text", "text": text}]})


def _plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}
