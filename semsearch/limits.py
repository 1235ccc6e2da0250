"""How much of a file of somebody's is held in memory at once."""

from __future__ import annotations

#: How long one row may be (of text: how many characters). A file without line ends, or a quote
#: that is never closed, must not fill the memory.
MAX_ROW_BYTES = 64 << 20
#: How many cells, or values in JSON, one row may have, as told by what separates them: each takes
#: twenty times the memory of its text. (A text has as many commas when it is as long as 20 Bibles.)
MAX_ROW_VALUES = 1_000_000


def size_shown(size: int) -> str:
    """``64 MiB``."""
    return f"{size >> 20} MiB"


def json_values(text: str) -> int:
    """How many values a JSON text can have, at most: each comes after one of these."""
    return sum(map(text.count, ",[{"))
