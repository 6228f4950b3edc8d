"""What people paste beside logs, in any number of lines and hardly ever the same twice: threads, chats, documents, code, other scripts."""

import argparse
import inspect
import json
import typing
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random

_WHO = ("We", "I", "Our cluster", "The second node", "A colleague", "This container", "The nightly job", "Somebody", "The new image")
_DID = (
    "run the 70B model on {n} cards", "lowered the context to {n}k", "restarted the server {n} times", "moved to release 0.{n}",
    "read the documentation twice", "tried --max-num-seqs {n}", "saw {n} GiB free in nvidia-smi", "load the weights from a network share",
    "goes OOM while the graphs are captured", "crashes with CUDA out of memory after {n} minutes", "dies during profiling", "serves {n} users",
    "never gets past loading the shards", "was killed by the kernel", "needs {n} GiB for the KV cache", "works with eager mode",
)  # fmt: skip
_THEN = (
    "and nothing changed.", "but the other one is fine.", "which is what we expected.", "because somebody asked for it.", "so I opened this.",
    "as the README says.", "and it works for short prompts.", "until the first long request.", "without any message in the log.",
    "and the logs are below.", "which no page mentions.", "although the card has 80 GB.", "What should we set?", "Is that intended?",
)  # fmt: skip
_ALSO = (
    "Thanks for looking into it.", "The dashboard shows the same curve as last week, only a little later in the day.", "See the link above.",
    "I will try the other branch tomorrow and write down what it prints.", "We use the usual chart with two changes of our own.",
    "Please keep the discussion about the installer in its own thread.", "A colleague wrote a small script that collects all of this.",
)  # fmt: skip
_HAN = (
    "在生产环境中我们用{n}块显卡运行这个模型，短提示词的时候一切正常。", "运行{n}个小时之后服务变得很慢，有人会重启容器。", "请问应该怎么设置参数？",
    "我把上下文长度降到了{n}k，但是没有任何变化。", "另一台机器使用同样的镜像，没有问题。", "捕获图的时候显存不足，进程退出。", "日志里只有下面这几行。",
    "昨天升级了驱动，今天早上就开始出现这个现象。", "加载权重之后就崩溃了，报错是内存不足。", "先谢谢大家，如果需要更多信息请告诉我。",
)  # fmt: skip
_QUOTED = (
    "INFO 11-18 09:12:{n:02d} [gpu_worker.py:298] Available KV cache memory: {n}.18 GiB",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 MiB. GPU 1 has a total capacity of 79.18 GiB of which 20.88 MiB is free.",
)
_YAML = (
    "- name: vllm-{n}\n  image: vllm/vllm-openai:v0.{n}.0\n  args:\n  - --model\n  - meta-llama/Llama-3.1-70B-Instruct\n"
    "  - --tensor-parallel-size={n}\n  resources:\n    limits:\n      nvidia.com/gpu: {n}\n      memory: {n}Gi\n  # one replica a node"
)


def _said(dice: Random, sentences: int) -> str:
    return " ".join(
        dice.choice(_ALSO) if dice.random() < 0.4 else f"{dice.choice(_WHO)} {dice.choice(_DID)} {dice.choice(_THEN)}".format(n=dice.randrange(2, 60))
        for _ in range(sentences)
    )  # fmt: skip


def thread() -> Iterator[str]:
    dice = Random(1)
    for n in count():
        yield from (f"user{n % 9} commented {n % 30} days ago", "", _said(dice, dice.randrange(2, 9)), "")
        if n % 3 == 0:
            yield from ("```", *(line.format(n=n % 60) for line in _QUOTED), "```", f"> {_said(dice, 1)}", "", _said(dice, 2))


def chat() -> Iterator[str]:
    dice = Random(2)
    return (f"[{9 + n // 60 % 12}:{n % 60:02d}] user{n % 7}: {_said(dice, 1 + n % 2)}" for n in count())


def document() -> Iterator[str]:
    dice = Random(3)
    for n in count(1):
        yield from (f"## {n}. {_said(dice, 1)}", "", _said(dice, 6), "", f"- `--option-{n}`: {_said(dice, 1)}", f"- {_said(dice, 1)}", "")


def chinese() -> Iterator[str]:
    dice = Random(4)
    return ("".join(dice.choice(_HAN) for _ in range(1 + n % 5)).format(n=2 + n % 60) for n in count())


def code() -> Iterator[str]:
    """The standard library's own."""
    return (line for module in (argparse, inspect, typing) for line in Path(module.__file__ or "").read_text("utf-8").splitlines())


def manifest() -> Iterator[str]:
    return (line for n in count(1) for line in _YAML.format(n=n % 64).splitlines())


def records() -> Iterator[str]:
    dice = Random(5)
    return (json.dumps({"id": n, "user": f"user{n % 9}", "tokens": n * 7, "text": _said(dice, 1)}) for n in count())
