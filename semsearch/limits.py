"""How much of a file of somebody's is held in memory at once."""

from __future__ import annotations

#: How long one row may be (of text: how many characters). A file without line ends, or a quote
#: that is never closed, must not fill the memory.
MAX_ROW_BYTES = 64 << 20
#: How many cells, or values in JSON, one row may have, as told by what separates them: each takes
#: twenty times the memory of its text. (A text has as many commas when it is as long as 20 Bibles.)
MAX_ROW_VALUES = 1_000_000

#: How large a part of an office document or an e-book may be that is held as a tree, which takes
#: some ten times the memory of its text.
MAX_PART_BYTES = 32 << 20
#: How much the files of an archive may be together, unpacked: archives grow a thousandfold.
MAX_UNPACKED_BYTES = 1 << 30
#: How many files an archive may hold.
MAX_ARCHIVE_FILES = 100_000
#: How much memory the process may take that converts documents, and how long it may take for one.
MAX_CONVERSION_BYTES, MAX_CONVERSION_SECONDS = 1 << 30, 60.0
#: How large a file may be that is read from a web server, and how long that may take.
MAX_DOWNLOAD_BYTES, MAX_DOWNLOAD_SECONDS = 1 << 30, 600.0
#: How long a web server may be silent.
MAX_SILENCE_SECONDS = 30.0


def size_shown(size: int) -> str:
    """``64 MiB``."""
    return f"{size >> 20} MiB"


def json_values(text: str) -> int:
    """How many values a JSON text can have, at most: each comes after one of these."""
    return sum(map(text.count, ",[{"))
