"""Reads two columns of a PDF page one after the other, where the file has them line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pypdfium2

#: A gap between columns is wider than a line is high.
_GAP_HEIGHTS = 1.0
#: Columns of prose have as many lines side by side, and as many words in a line.
_LEAST_LINES, _LEAST_WORDS = 3, 3


class _Piece(NamedTuple):
    """A part of a line without a wide gap: its text and its place on the page."""

    left: float
    right: float
    bottom: float
    text: str


def text_in_columns(page: pypdfium2.PdfTextpage) -> str | None:
    """The text of a page with two columns of prose side by side; None for others.

    The lines above and below the columns, or across both, keep their places.
    """
    lines = list(_lines(page))
    gaps = [(one.right, two.left) for line in lines for one, two in pairwise(line)]
    middles = [(left + right) / 2 for left, right in gaps]
    inside = {x: sum(left < x < right for left, right in gaps) for x in middles}
    gutter = max(inside, key=lambda x: inside[x], default=0)
    words: list[int] = []  # of both halves of the lines with a gap there
    for line in lines:
        if any(one.right < gutter < two.left for one, two in pairwise(line)):
            left = sum(len(piece.text.split()) for piece in line if piece.right < gutter)
            words += [left, sum(len(piece.text.split()) for piece in line) - left]
    if len(words) < 2 * _LEAST_LINES or median(words) < _LEAST_WORDS:
        return None
    text: list[str] = []
    columns: tuple[list[str], list[str]] = ([], [])
    for line in lines:
        if any(piece.left < gutter < piece.right for piece in line):
            text += [*columns[0], *columns[1], " ".join(piece.text for piece in line)]
            columns = ([], [])
            continue
        for column, is_left in zip(columns, (True, False), strict=True):
            pieces = [piece.text for piece in line if (piece.right < gutter) is is_left]
            column += [" ".join(pieces)] if pieces else []
    return "\n".join([*text, *columns[0], *columns[1]])


def _lines(page: pypdfium2.PdfTextpage) -> Iterator[Sequence[_Piece]]:
    """The lines of a page in their order, each in pieces from left to right."""
    line: list[_Piece] = []
    for piece in _pieces(page):
        if line and abs(piece.bottom - line[-1].bottom) > 2:
            yield sorted(line)
            line = []
        line.append(piece)
    if line:
        yield sorted(line)


def _pieces(page: pypdfium2.PdfTextpage) -> Iterator[_Piece]:
    text, left, right, bottom, height = "", 0.0, 0.0, 0.0, 0.0
    for number, letter in enumerate(page.get_text_range(errors="replace")):
        if letter.isspace():
            text += " "
            continue
        x, y, end, top = page.get_charbox(number, loose=True)
        is_same = abs(y - bottom) < height / 2 and -height < x - right < _GAP_HEIGHTS * height
        if text.strip() and not is_same:
            yield _Piece(left, right, bottom, " ".join(text.split()))
            text = ""
        if not text.strip():
            text, left = "", x
        text, right, bottom, height = text + letter, end, y, top - y
    if text.strip():
        yield _Piece(left, right, bottom, " ".join(text.split()))
