"""The shapes of the rule files: what a rule may say, and nothing else."""

from typing import Any, Literal

import msgspec

from bot.domain.diagnosis import Direction, Phase

Texts = str | list[str]
Unsaid = Literal[""]


class Shape(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A table in a rule file; an unknown key is a mistake."""


class FormatExample(Shape, frozen=True):
    """A line, and the fields that peeling this signature off it must give; `rest` is what remains."""

    line: str
    expect: dict[str, Any]


class FormatRule(Shape, frozen=True):
    """How lines are signed. `pattern` is matched at the start of what is left of a line, again and again.

    Named groups: role parts rank pid ip level at file file_line container repeats node.
    """

    id: str
    title: str
    pattern: str
    anchor: Texts = ""
    role: str = ""
    example: list[FormatExample] = []


class FactExample(Shape, frozen=True):
    """A line (or several), and the fields that must be captured from it."""

    line: str
    expect: dict[str, Any] = {}


class Counterexample(Shape, frozen=True):
    """A line that this rule must leave alone, and the rule that should win instead, if any."""

    line: str
    instead: str = ""


class FactRule(Shape, frozen=True):
    """What a line says. `anchor` is plain text looked for before `pattern` is tried; every group named in `fields` is parsed.

    `vllm` narrows the version when none is printed; it never suppresses a match. `engine` names the engine that speaks so.
    `spans` lets the message run over following unsigned lines (hard wraps). `sources`: public threads that show it, for who mends the rule.
    `figure`: how a figure looks without which it says nothing, or several, each of them needed; on a text that lacks one it is not tried.
    `below`: fields, each with the field that must be larger where the line gives both: else nothing fell short.
    """

    id: str
    title: str
    kinds: list[str]
    anchor: Texts
    pattern: str = ""
    figure: Texts = ""
    fields: dict[str, str] = {}
    below: dict[str, str] = {}
    vllm: str = ""
    engine: str = ""
    spans: int = 0
    sources: list[str] = []
    example: list[FactExample] = []
    counterexample: list[Counterexample] = []


class Condition(Shape, frozen=True):
    """One thing that may hold: a fact, a kind of fact, a frame (with the file it stands in), or an echoed source line."""

    fact: Texts = ""
    kind: Texts = ""
    frame: Texts = ""
    file: Texts = ""
    echo: str = ""
    where: dict[str, Any] = {}


class Inside(Shape, frozen=True):
    """A finer phase within an outer frame."""

    phase: Phase
    any: list[Condition] = []
    none: list[Condition] = []


class OuterFrame(Shape, frozen=True):
    """A row of the ordered list: the first whose frames stand in the traceback names the phase.

    `bare`: the phase, no more than likely, where the traceback is cut right below this frame.
    """

    id: str
    phase: Phase
    any: list[Condition]
    none: list[Condition] = []
    of: Literal["failing", "engine-core", "anyone"] = "failing"
    weight: Literal["decisive", "strong", "hint"] = "decisive"
    bare: Phase | Unsaid = ""
    inside: list[Inside] = []


class Mark(Shape, frozen=True):
    """A line of progress, and the phase that the engine is in once it has been printed."""

    fact: str
    then: Phase
    also: list[Phase] = []


class PhaseRule(Shape, frozen=True):
    """A message or a constellation that names a phase. `says`: what happened, where the phase's own words do not say it."""

    id: str
    phase: Phase
    weight: Literal["decisive", "strong", "hint"]
    title: str = ""
    says: str = ""
    all: list[Condition] = []
    any: list[Condition] = []
    none: list[Condition] = []


class RuledOut(Shape, frozen=True):
    """Phases that a message excludes: no figure, mark or sentence may name them then, only what is decisive."""

    id: str
    title: str
    phases: list[Phase]
    any: list[Condition]
    none: list[Condition] = []


class RemedyRule(Shape, frozen=True):
    """One change and when it is the right one. Texts may name evidence: {free}, {utilization}.

    Rows are read in the file's order: the first whose conditions hold is offered first. `value`: as it stands in a command, or the name of
    a function of `bot/diagnosis/values.py` that counts it (`lower-utilization`). `same_step`: ids of changes that are this
    one in other words; beside one of them it is not offered. `at_most`: options of the same start that the engine refuses above this value:
    a command line takes them down with it.
    """

    id: str
    phases: list[Phase]
    because: str
    disproved_by: str
    costs: str
    flag: str = ""
    direction: Direction | Unsaid = ""
    value: str = ""
    engines: list[str] = msgspec.field(default_factory=lambda: ["vllm", "unknown"])
    vllm: str = ""
    all: list[Condition] = []
    any: list[Condition] = []
    none: list[Condition] = []
    same_step: list[str] = []
    at_most: list[str] = []
    keep_fixed: list[str] = msgspec.field(default_factory=lambda: ["model revision", "engine image", "GPU topology", "workload"])


class AvoidRule(Shape, frozen=True):
    """A change that people try in this phase and that the evidence speaks against."""

    flag: str
    direction: Direction
    phases: list[Phase]
    because: str
    engines: list[str] = msgspec.field(default_factory=lambda: ["vllm", "unknown"])
    vllm: str = ""
    all: list[Condition] = []
    any: list[Condition] = []
    none: list[Condition] = []


class QuestionRule(Shape, frozen=True):
    """A question, the command that answers it by launcher, and what an answer would change."""

    id: str
    text: str
    how: dict[str, str]
    would_change: Literal["phase", "rank", "recommendation"]
    choices: list[str] = []
    all: list[Condition] = []
    any: list[Condition] = []
    none: list[Condition] = []


class Topic(Shape, frozen=True):
    """What `explain` says."""

    id: str
    title: str
    paragraphs: list[str]
    asks: list[str] = []
    numbers: list[str] = []


class Redaction(Shape, frozen=True):
    """A secret's pattern; the group `secret` is hidden."""

    id: str
    title: str
    anchor: Texts
    pattern: str
    example: list[FactExample]
    counterexample: list[Counterexample] = []


class ArgumentRule(Shape, frozen=True):
    """An argument of the engine, its other spellings, and its default by version range.

    `carried`: a suggested command line repeats it, as given or as the engine reports it, `spelled` as another engine writes it (empty where
    that one has none); `resolved`: only where a flag gave it. `vllm`: the releases that have it. `same_as`: another name of the same limit,
    under which an answer shows it. `engines`: those that alone have it.
    """

    name: str
    kind: Literal["int", "float", "bytes", "str", "bool", "json"]
    flags: list[str] = []
    keys: list[str] = []
    default: dict[str, Any] = {}
    vllm: str = ""
    carried: bool = False
    resolved: bool = False
    same_as: str = ""
    engines: list[str] = []
    spelled: dict[str, str] = {}


class Launch(Shape, frozen=True):
    """How the command line of these engines begins, up to the model; `starts`: what else starts one, from the newest on.

    `vllm`: the releases that have it. `image`: what starts it is a container's image.
    """

    engines: list[str]
    command: str
    starts: list[str]
    vllm: str = ""
    image: bool = False


class Advice(Shape, frozen=True):
    """Words of an engine's advice: nothing that follows them on the line was set. `signed`: only on lines that an engine signed.

    Of a person's: `heads` where what follows their colon is a cure, `example` where what stands in brackets behind them, after `e.g.`, is.
    """

    says: list[str]
    signed: bool = False
    heads: bool = False
    example: bool = False


class TermRow(Shape, frozen=True):
    """Whether a version range subtracts a term from the budget; for every version and runner exactly one row of a term holds.

    `runner`: v0, v1 or v2 (vLLM's V0 engine, and V1 with model runner V1 or V2); empty for all.
    """

    term: str
    vllm: str
    runner: str = ""
    charged: bool = True
    note: str = ""


class PrintedRow(Shape, frozen=True):
    """What a printed figure includes beyond its name, or what it is made of."""

    fact: str
    field: str
    vllm: str
    includes: list[str] = []


class ScopeRow(Shape, frozen=True):
    """Who prints a line."""

    fact: str
    vllm: str
    speaks: str
    runner: str = ""


class AccountingExample(Shape, frozen=True):
    """A log excerpt of one version, the figures that its budget must give (`weights_bytes = "15.5 GiB"`), and whether they close."""

    title: str
    log: str
    expect: dict[str, Any]
    closes: bool | None = None


class Release(Shape, frozen=True):
    """A release of vLLM, oldest first. `markers` are source lines (`core.py:708`) of messages that it is known to print."""

    version: str
    markers: list[str] = []


class Wording(Shape, frozen=True):
    """A way to say one message that only some versions have. `pattern` is searched in the line of a fact with the id `fact`.

    An empty `fact`: the pattern is searched in the names that processes sign with.
    """

    fact: str
    pattern: str
    vllm: str
    example: list[str]


class Derivation(Shape, frozen=True):
    """A kind of fact that `bot/diagnosis/derived.py` and its neighbours state, and what it means.

    `marks`: texts one of which shows it, in a frame's path or an engine's own words.
    """

    kind: str
    says: str
    marks: list[str] = []


class Vocabulary(Shape, frozen=True):
    """Vocabulary sizes, in entries. `pattern`: they prove something only where the model's name has it."""

    sizes: list[int]
    pattern: str = ""
    example: str = ""


class ModelWords(Shape, frozen=True):
    """How running text names a model: owners on the hub (before a slash), and how a family's name begins (a figure follows)."""

    owners: list[str]
    families: list[str]


class Naming(Shape, frozen=True):
    """A kind that follows from the name of the model or the card, or from the words of a question."""

    kind: str
    of: Literal["model", "gpu", "question"]
    pattern: str
    example: str


Meaning = Literal[
    "shortage", "failure", "error", "killed", "standstill", "lack", "growth", "grows", "slowly", "host", "shm", "device", "memory",
    "cache", "pool", "make", "request-length", "need", "left", "longer", "free", "fraction", "while", "at", "after", "later", "before",
    "but", "then", "thereafter", "fine", "not", "wish", "question", "eager", "cures", "nothing", "bygone", "absent", "doubt",
    "elsewhere", "now", "otherwise", "triggers", "there", "trace", "demand", "have", "averted", "handle", "weights", "trial", "back",
    "first", "only", "ran", "initially", "turned", "retracted", "misjudged", "remainder",
]  # fmt: skip


class Word(Shape, frozen=True):
    """What complains in people's sentences, and what joins them together."""

    means: Meaning
    says: list[str]


class Moment(Shape, frozen=True):
    """What an engine can be at, in people's words; `telling` words are said of nothing else.

    `lasting`: what comes after it is meant by it too (a wake-up). `again`: it may have gone well before (requests).
    `begins_after`: what is going on as long as it has not begun.
    `alone`: its words complain by themselves. `aside`: it says something beside whatever else is said.
    `pairs`: two words that name it together, by what they mean or which moment they name, the rarer one first.
    """

    id: str
    title: str
    kinds: list[str]
    telling: list[str] = []
    says: list[str] = []
    lasting: bool = False
    again: bool = False
    begins_after: str = ""
    alone: bool = False
    aside: bool = False
    pairs: list[tuple[str, str]] = []
    example: list[FactExample] = []
    counterexample: list[Counterexample] = []


class Unspoken(Shape, frozen=True):
    """A line that is no person's words though nothing signs it; `pattern` is matched where the line begins, if an anchor stands in it."""

    id: str
    title: str
    pattern: str
    example: list[FactExample]
    counterexample: list[Counterexample] = []
    anchor: Texts = ""


class Tables(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """All that the rule files hold; each holds some of it, as `[[name]]`."""

    formats: list[FormatRule] = msgspec.field(name="format")
    facts: list[FactRule] = msgspec.field(name="fact")
    outer: list[OuterFrame]
    marks: list[Mark] = msgspec.field(name="mark")
    rules: list[PhaseRule] = msgspec.field(name="rule")
    ruled_out: list[RuledOut]
    remedies: list[RemedyRule] = msgspec.field(name="remedy")
    avoid: list[AvoidRule]
    questions: list[QuestionRule] = msgspec.field(name="question")
    topics: list[Topic] = msgspec.field(name="topic")
    redactions: list[Redaction] = msgspec.field(name="redaction")
    arguments: list[ArgumentRule] = msgspec.field(name="argument")
    launches: list[Launch] = msgspec.field(name="launch")
    advice: list[Advice]
    charges: list[TermRow] = msgspec.field(name="charge")
    printed: list[PrintedRow]
    scopes: list[ScopeRow] = msgspec.field(name="scope")
    accounting: list[AccountingExample]
    releases: list[Release] = msgspec.field(name="release")
    wordings: list[Wording] = msgspec.field(name="wording")
    derived: list[Derivation]
    vocabularies: list[Vocabulary] = msgspec.field(name="vocabulary")
    namings: list[Naming] = msgspec.field(name="naming")
    model_words: list[ModelWords]
    words: list[Word] = msgspec.field(name="word")
    moments: list[Moment] = msgspec.field(name="moment")
    unspoken: list[Unspoken]
