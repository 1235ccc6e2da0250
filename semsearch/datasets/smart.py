"""Documents and queries of the classical test collections, in their three dialects.

SMART (Cranfield, CISI, CACM, MED, ADI): ``.I 7`` begins an entry and a letter behind a dot a part
of it: ``.T`` the title, ``.W`` the body, and authors, sources, citations and notes, which are left
out. TIME: ``*TEXT 017 …`` or ``*FIND 1`` begins one, ``*STOP`` ends the file. NPL: a number stands
above an entry and a slash below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from semsearch.datasets.textlines import Line, numbered_lines
from semsearch.errors import DatasetError
from semsearch.texts import joined_text, one_line

_SMART_ENTRY = re.compile(r"\.I\s+(\S+)\s*")
_SMART_PART = re.compile(r"\.([ABCKNTWX])\s*")
_TIME_ENTRY = re.compile(r"\*(TEXT|FIND)\s+(\d+)\b.*")
_NUMBER = re.compile(r"\s*(\d+)\s*")


def id_of(text: str) -> str:
    """An id without leading zeros, with which some files write it and others not."""
    return text.lstrip("0") or "0"


def read_entries(file: Path) -> dict[str, str]:
    """The texts of a file by id, in its order.

    A text is title and body (`joined_text`), in which white space is one space; it can be empty, as
    two of Cranfield are. TIME's documents are called by their place, as its judgements call them,
    and not by the number behind ``*TEXT``. What is not UTF-8 is Latin-1.

    Raises:
        DatasetError: the file cannot be read, is in none of the dialects, or has an id twice.
    """
    lines = [line for line in numbered_lines(file, fallback="latin-1") if line.text.strip()]
    first = lines[0].text if lines else ""
    if _SMART_ENTRY.fullmatch(first):
        entries = _smart(lines)
    elif _TIME_ENTRY.fullmatch(first):
        entries = _time(lines)
    elif _NUMBER.fullmatch(first):
        entries = _npl(lines)
    else:
        raise DatasetError(f"{file} begins neither with '.I 1' nor '*TEXT', '*FIND' or a number")
    texts: dict[str, str] = {}
    for place, name, text in entries:
        if name in texts:
            raise DatasetError(f"{place}: the id {name} is there already")
        texts[name] = text
    return texts


def _smart(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    starts = [row for row, line in enumerate(lines) if _SMART_ENTRY.fullmatch(line.text)]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        parts: dict[str, list[str]] = {"T": [], "W": []}
        part: list[str] = []
        for line in lines[start + 1 : end]:
            heading = _SMART_PART.fullmatch(line.text)
            if heading:
                part = parts.setdefault(heading[1], [])
            else:
                part.append(line.text)
        title, body = _joined(parts["T"]), _joined(parts["W"])
        name = id_of(lines[start].text.split()[1])
        yield lines[start].place, name, joined_text([title, body])


def _time(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    starts = [row for row, line in enumerate(lines) if _TIME_ENTRY.fullmatch(line.text)]
    for place, (start, end) in enumerate(zip(starts, [*starts[1:], len(lines)], strict=True), 1):
        heading = _TIME_ENTRY.fullmatch(lines[start].text)
        called = heading[2] if heading and heading[1] == "FIND" else str(place)
        body = (line.text for line in lines[start + 1 : end] if line.text.strip() != "*STOP")
        yield lines[start].place, id_of(called), _joined(body)


def _npl(lines: list[Line]) -> Iterator[tuple[str, str, str]]:
    entry: list[Line] = []
    for line in lines:
        if line.text.strip() != "/":
            entry.append(line)
            continue
        number = _NUMBER.fullmatch(entry[0].text) if entry else None
        if number is None:
            raise DatasetError(f"{line.place}: no number above the entry that ends here")
        yield entry[0].place, id_of(number[1]), _joined(line.text for line in entry[1:])
        entry = []
    if entry:
        raise DatasetError(f"{entry[0].place}: no slash ends the entry that begins here")


def _joined(lines: Iterable[str]) -> str:
    return one_line(" ".join(lines))
