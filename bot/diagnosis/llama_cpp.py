"""Values of llama.cpp's settings, from its own figures: the context, the layers on a card, the physical batch."""

from bot.diagnosis.figures import NONE_HELPS, Value
from bot.diagnosis.scene import Scene
from bot.domain.diagnosis import ReportedBudget
from bot.domain.size import MIB

KEPT_FREE = 0.95
"""The share of a card's free memory that layers may take: the driver and the desktop want the rest."""
BESIDE_CACHE = 512 * MIB
"""What the compute buffer takes beside the cache with a physical batch of 512 and a vocabulary of 150,000, and some room."""
KEYS_IN_EIGHT_BITS = 1 - (1 - 8.5 / 16) / 2
"""The share of a cache whose keys are stored as q8_0: 34 bytes for 32 values, and the other half as before."""


def half_context(scene: Scene, budget: ReportedBudget | None) -> Value:
    """The longest context whose cache fits into what llama.cpp found free beside the weights, in whole 1,024 tokens; half of the one that
    is printed or set where its figures do not say.
    """
    now = _context(scene)
    if not now or (room := _room_for_cache(scene)) is None or scene.error_fact is None:
        return (str(int(now) // 2), None) if now else (None, None)
    fitting = int(room / (scene.error_fact.fields["tried"] / now)) // 1024 * 1024
    return (str(min(fitting, int(now) // 1024 * 1024 - 1024)), None) if fitting >= 1024 and now > 1024 else NONE_HELPS


def quantized_keys(scene: Scene, budget: ReportedBudget | None) -> Value:
    """Keys of eight bits; none helps where the figures say that the cache is too large with them too."""
    room = _room_for_cache(scene)
    asked = scene.error_fact.fields["tried"] if scene.error_fact is not None and room is not None else 0
    return NONE_HELPS if room is not None and asked * KEYS_IN_EIGHT_BITS > room else ("q8_0", None)


def _context(scene: Scene) -> float | None:
    deployment = scene.evidence.deployment
    printed = next((f.fields["context"] for f in scene.facts if "context" in f.fields), None)
    return printed or deployment.number("max_model_len") or deployment.number("ctx_size")


def _room_for_cache(scene: Scene) -> int | None:
    """What the card that failed had free beside what stood there, less what comes beside the cache; None where it was no cache that failed,
    or a figure is not printed.
    """
    fact = scene.error_fact
    if fact is None or not fact.fields.get("tried") or not scene.has("names-kv-buffer") or scene.has("names-compute-buffer"):
        return None
    free, standing = _free(scene, fact.fields.get("gpu") or 0), _standing(scene, fact.fields.get("gpu") or 0)
    return None if free is None or not standing else free - standing - BESIDE_CACHE


def _free(scene: Scene, card: int) -> int | None:
    """What a card had free before anything was loaded."""
    own = next((f.fields["free_at_start_bytes"] for f in scene.named("llama-cpp.device-free") if f.fields["card"] == card), None)
    return own or next((f.fields["free"] for f in scene.named("smi.free-row") if f.fields.get("gpu") == card), None)


def _standing(scene: Scene, card: int) -> int:
    """Weights and caches on a card, as printed."""
    return sum(f.fields.get("weights_bytes", 0) + f.fields.get("kv_cache_bytes", 0) for f in scene.facts if f.fields.get("card") == card)


def fewer_layers(scene: Scene, budget: ReportedBudget | None) -> Value:
    """So many layers on the card as what it had free holds, from llama.cpp's own figures; None where one of them is missing.

    What grows with the layers (weights, cache) must fit beside what does not (the compute buffer).
    """
    layers, fact = _layers_on_cards(scene), scene.error_fact
    tried = None if fact is None else fact.fields.get("tried")
    if layers is None or fact is None or not tried:
        return None, None
    card = fact.fields.get("gpu") or 0
    if (free := _free(scene, card)) is None:
        return None, None
    standing = _standing(scene, card)
    fixed = tried if scene.has("names-compute-buffer") else 0
    growing = standing + (0 if fixed else tried)
    fitting = int(layers * min(1.0, (free * KEPT_FREE - fixed) / growing)) if growing else 0
    return (str(max(0, min(fitting, layers - 1))), None)


def _layers_on_cards(scene: Scene) -> int | None:
    """As printed; else what was asked for, at most the model's own and its output layer."""
    printed = [f.fields["layers"] for f in scene.facts if "offloaded" in f.kinds]
    if printed:
        return int(printed[-1])
    own = next((f.fields["repeating"] + 1 for f in scene.facts if f.id == "llama-cpp.layers"), None)
    asked = scene.evidence.deployment.number("n_gpu_layers")
    return own if own is None or asked is None or asked < 0 else min(own, int(asked))


def smaller_batch(scene: Scene, budget: ReportedBudget | None) -> Value:
    """llama.cpp's physical batch: half of its 512, or of what was set; none below 32."""
    half = int(scene.evidence.deployment.number("ubatch_size") or 512) // 2
    return (str(half), None) if half >= 32 else (None, None)
