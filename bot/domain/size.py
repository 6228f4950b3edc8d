"""Bytes and how people write them: GiB is not GB."""

import re

KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40
KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12

_UNITS = {
    "b": 1, "byte": 1, "bytes": 1,
    "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
    "kb": KB, "mb": MB, "gb": GB, "tb": TB,
    "k": KIB, "m": MIB, "g": GIB, "t": TIB, "ki": KIB, "mi": MIB, "gi": GIB, "ti": TIB,
}  # fmt: skip
_SIZE = re.compile(r"\s*([-+\u2212]?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*([A-Za-z]*)\s*$", re.IGNORECASE)
LARGEST = 2**63 - 1
"""What a database column holds; no machine has so many bytes, and no engine so many tokens."""


def parse_size(text: str) -> int:
    """Bytes of a figure with its unit; a bare number is bytes. ValueError when it is no size."""
    match = _SIZE.match(text)
    unit = "" if match is None else match[2].lower() or "b"
    if match is None or unit not in _UNITS:
        raise ValueError(f"not a size: {text!r} (write it as 64.00 MiB, 80 GB or a number of bytes)")
    number = float(match[1].replace(",", "").replace("\u2212", "-")) * _UNITS[unit]
    if not abs(number) <= LARGEST:
        raise ValueError(f"not a size: {text[:40]!r} is more bytes than there are")
    return round(number)


def gib(count: int | float) -> str:
    """A byte count in the unit that reads best, binary: 64.00 MiB, 35.68 GiB, and 0.61 GiB where no MiB were meant."""
    size = float(count)
    if MIB <= abs(size) < GIB and size % MIB and abs(size - round(size / GIB, 2) * GIB) < 1:
        return f"{size / GIB:,.2f} GiB"
    for unit, name in ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(size) >= unit:
            return f"{size / unit:,.2f} {name}"
    return f"{int(size)} B"


def gb(count: int | float) -> str:
    """A byte count in decimal gigabytes: 46.1 GB."""
    return f"{count / GB:,.2f}".rstrip("0").rstrip(".") + " GB"
