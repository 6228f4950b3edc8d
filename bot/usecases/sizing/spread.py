"""How many cards a line of words asks about, node by node, and the ranks that they are."""

import re

from bot.usecases.sizing.reader import Reader

_NODES = (
    r"(?P<nodes>\d{1,3})[ -]?(?:nodes?|servers?|machines?|hosts?|boxes)"
    r"(?: (?:of|with|having|mit|de|avec|con|com|с)(?: (?P<each>\d{1,2})(?! ?[x×*]? ?[A-Za-z]))?)?"
)
_EACH = r"each|every|per (?:node|server|machine|host)|/ ?node"
_TOTAL = r"(?:in )?total|altogether|in all"
_GRID = re.compile(r"(?<![\w.])(\d{1,2}) ?[x×*] ?(\d{1,2}) ?[x×*]? ?(?=[A-Za-z])")


def read_nodes(reader: Reader) -> None:
    """`2 nodes of 8 H100`, `16 H100 on 2 nodes`, `2x8 H100`. Cards named behind the nodes are those of each, before them those of all."""
    for match in list(_GRID.finditer(reader.rest)):
        if next((mention.start for mention in reader.gpus.mentions(reader.rest[match.end() :])), 1) == 0:
            reader.blank(match.start(), match.end())
            reader.rest = f"{reader.rest[: match.start()]} {match[2]}x{reader.rest[match.end() :]}"
            reader.question |= {"nodes": int(match[1]), "per_node": True}
    for match in reader.take(_NODES):
        each = any(True for _ in reader.take(_EACH))
        total = any(True for _ in reader.take(_TOTAL))
        behind = any(mention.start > match.start() for mention in reader.gpus.mentions(reader.rest))
        nodes = int(match["nodes"])
        reader.question |= {"nodes": nodes, "per_node": each or (behind and not total)}
        if match["each"] and not any(mention.count for mention in reader.gpus.mentions(reader.rest)):
            reader.question |= {"cards": int(match["each"]), "per_node": True}


def spread(reader: Reader) -> None:
    """A number of cards is a number of ranks: tensor parallel inside a node and pipeline parallel across nodes, unless the words spread
    them otherwise. No card at all stays in the question, to be refused."""
    nodes, per_node = reader.question.pop("nodes", 1), reader.question.pop("per_node", False)
    cards = reader.question.pop("cards", None)
    if cards == 0 or nodes == 0:
        reader.question["cards"] = 0
        return
    if cards is None:
        if nodes > 1:
            reader.corrections.append(f"{nodes} nodes, and how many cards in each is not said: nodes are left out")
        return
    cards *= nodes if per_node else 1
    tp, pp, dp = (reader.question.get(name) for name in ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"))
    taken = (tp or 1) * (pp or 1) * (dp or 1)
    if nodes > 1 and (tp, pp, dp) == (None, None, None) and cards % nodes == 0:
        tp = cards // nodes
        reader.question |= {"tensor_parallel_size": tp, "pipeline_parallel_size": nodes}
        reader.corrections.append(
            f"{cards} cards on {nodes} nodes: tensor parallel {tp} inside a node, pipeline parallel {nodes} across them"
        )
        return
    if nodes > 1 and cards % nodes:
        reader.corrections.append(f"{cards} cards do not divide by {nodes} nodes; nodes are left out")
    if tp is None and cards % taken == 0:
        reader.question["tensor_parallel_size"] = cards // taken
    elif cards % taken == 0 and cards > taken and dp is None:
        reader.question["data_parallel_size"] = cards // taken
        reader.corrections.append(f"{cards} cards hold {cards // taken} replicas of {taken}")
    elif cards != taken:
        reader.corrections.append(f"{cards} cards do not divide by the {taken} ranks that the words name; {taken} ranks are used")
