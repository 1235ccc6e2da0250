"""Reads two columns of a PDF page one after the other, where the file has them line by line."""

from __future__ import annotations

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
    lines = _lines(page)
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


def _lines(page: pypdfium2.PdfTextpage) -> list[list[_Piece]]:
    """The lines of a page in their order, each in pieces from left to right."""
    lines: list[list[_Piece]] = []
    for piece in _pieces(page):
        if lines and abs(piece.bottom - lines[-1][-1].bottom) <= 2:
            lines[-1].append(piece)
        else:
            lines.append([piece])
    return [sorted(line) for line in lines]


def _pieces(page: pypdfium2.PdfTextpage) -> list[_Piece]:
    pieces: list[_Piece] = []
    space, height = "", 0.0
    for number, letter in enumerate(page.get_text_range(errors="replace")):
        if letter.isspace():
            space = " "
            continue
        left, bottom, right, top = page.get_charbox(number, loose=True)
        last = pieces[-1] if pieces else _Piece(0.0, 0.0, 0.0, "")
        is_level = abs(bottom - last.bottom) < height / 2
        if is_level and -height < left - last.right < _GAP_HEIGHTS * height:
            pieces[-1] = _Piece(last.left, right, bottom, f"{last.text}{space}{letter}")
        else:
            pieces.append(_Piece(left, right, bottom, letter))
        space, height = "", top - bottom
    return pieces
