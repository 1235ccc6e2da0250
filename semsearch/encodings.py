"""Which encoding a text has that cannot be read as the one it is said to have: a guess to offer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from charset_normalizer.models import CharsetMatch

#: How Python's "surrogateescape" keeps a byte that it cannot decode (PEP 383).
ESCAPED_BYTE = re.compile("[\udc80-\udcff]")

#: What files are written in, as Python calls it; of those that are as likely, the first is meant.
_COMMON = (
    "utf-8",
    "windows-1252",
    "windows-1250",
    "windows-1251",
    "windows-1253",
    "windows-1254",
    "windows-1255",
    "windows-1256",
    "windows-1257",
    "koi8-r",
    "iso8859-2",
    "shift_jis",
    "euc_jp",
    "gb18030",
    "big5",
    "euc_kr",
)


def likely_encoding(text: str, encoding: str = "utf-8") -> str | None:
    """What a text with escaped bytes was written in; None when nothing says so.

    Args:
        text: some of it, with `ESCAPED_BYTE` for what could not be decoded.
        encoding: what it was read as.
    """
    escaped = len(ESCAPED_BYTE.findall(text))
    if not escaped:
        return None
    try:
        data = text.encode(encoding, "surrogateescape")
    except UnicodeError:  # UTF-16 has no place for single bytes
        return None
    if _decoded(data, "utf-8") is not None:
        return "utf-8"
    if len(re.findall("[^\x00-\x7f]", text)) >= 2 * escaped:
        return None  # most of it is what it is said to be: it is damaged
    import charset_normalizer  # only when something is wrong

    matches = charset_normalizer.from_bytes(data, cp_isolation=list(_COMMON))
    best = matches.best()
    if best is None:
        return None
    equal = {str(one) for one in matches if _score(one) == _score(best)}
    return next((name for name in _COMMON if _decoded(data, name) in equal), None)


def way_out(text: str, encoding: str = "utf-8", option: str | None = "--encoding") -> str:
    """``not UTF-8; the file looks like windows-1252: --encoding windows-1252``.

    Args:
        text: some of the file, with `ESCAPED_BYTE` for what could not be decoded.
        encoding: what it was read as.
        option: names the right encoding; None where there is no such option.
    """
    name = "UTF-8" if encoding in ("utf-8", "utf-8-sig") else encoding
    likely = likely_encoding(text, encoding)
    if likely is None:
        todo = f"name its encoding with {option}" if option else "convert the file to UTF-8"
        return f"not {name}; {todo}"
    todo = f"{option} {likely}" if option else "convert it to UTF-8"
    return f"not {name}; the file looks like {likely}: {todo}"


def undecodable(text: str, encoding: str = "utf-8", option: str | None = "--encoding") -> str:
    """What is wrong with a text that has escaped bytes, and the way out; see `way_out`."""
    return f"{first_escaped(text)} is {way_out(text, encoding, option)}"


def first_escaped(text: str) -> str:
    """``byte 0xe9``: the first one that could not be decoded."""
    escaped = ESCAPED_BYTE.search(text)
    return f"byte 0x{ord(escaped.group()) - 0xDC00:02x}" if escaped else "a byte"


def _score(match: CharsetMatch) -> tuple[float, float]:
    return match.chaos, match.coherence


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeError:
        return None
