"""Whether the first row of a table is a header."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from semsearch.corpus.roles import USUAL, plain_name

#: The rows that are examined.
MAX_ROWS = 100

#: Numbers, dates, times, amounts: ``3.5``, ``2024-01-05``, ``10:30``, ``-7 %``, ``$1,000``.
_NUMBER = re.compile(r"[-+$€£]{0,2}\d[\d.,:/ -]*[%€$£]?")
_PROSE_WORDS = 4
_SENTENCE_END = re.compile(r"\w[.!?]['\")\]]?$|[。！？।؟۔]$")
# Scripts without spaces between words: Thai, Lao, Khmer, Japanese and Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_PROSE_UNSPACED = 8


def has_header(rows: Iterable[Sequence[str]], wanted: Collection[str] = ()) -> bool:
    """Whether the first of these rows names the columns.

    It does if it has a usual name (`USUAL`). Otherwise it is data if one of its cells is a number
    or date, if one occurs again in its column, or if all of them are prose.

    Args:
        rows: the first rows of a file; at least one.
        wanted: names given by the user; a row with one of them is a header.
    """
    first, *below = ([cell.strip() for cell in row] for row in islice(rows, MAX_ROWS))
    if any(name in first for name in wanted if not name.isdecimal()):
        return True
    # Concatenated files repeat their header in the middle.
    below = [row for row in below if len(row) == len(first) and row != first]
    recurs = [any(row[place] == cell for row in below) for place, cell in enumerate(first)]
    if any(
        plain_name(cell) in USUAL and not again for cell, again in zip(first, recurs, strict=True)
    ):
        return True
    named = [(cell, again) for cell, again in zip(first, recurs, strict=True) if cell]
    is_data = any(again or _NUMBER.fullmatch(cell) for cell, again in named)
    return not is_data and not all(is_prose(cell) for cell, _ in named)


def is_prose(cell: str) -> bool:
    """Whether a cell has several words, or ends like a sentence."""
    words = cell.count(" ") + 1
    return (
        words >= _PROSE_WORDS
        or (words > 1 and _SENTENCE_END.search(cell) is not None)
        or len(_UNSPACED.findall(cell)) >= _PROSE_UNSPACED
    )
