"""Limits on the memory and time that reading files may take."""

from __future__ import annotations

#: The maximum size of a row (in characters, for text), so that a file without line ends, or with an
#: unclosed quote, does not fill the memory.
MAX_ROW_BYTES = 64 << 20

#: The maximum size of nested JSON, which is parsed as a whole.
MAX_JSON_CHARACTERS = 1 << 29
#: The maximum size of a page of HTML, whose tree takes about ten times the memory of its text.
MAX_PAGE_BYTES = 32 << 20
#: The maximum size of a document that has to be stored in a temporary file.
MAX_STORED_BYTES = 1 << 30
#: Limits of the process that converts documents: its memory, and the time per document.
MAX_CONVERSION_BYTES, MAX_CONVERSION_SECONDS = 1 << 30, 60.0
#: The maximum size of a download.
MAX_DOWNLOAD_BYTES = 1 << 30
#: The timeout for a response of a web server.
MAX_SILENCE_SECONDS = 30.0


def size_shown(size: int) -> str:
    """``64 MiB``."""
    return f"{size >> 20} MiB"
