"""Splits a long text into passages that fit an encoder's maximum length.

Passages end at sentence ends, which are chosen by the content of sentences and not by their
position (content-defined passageing, as in LBFS, Muthitacharoen et al. 2001). So an edit inside a
long document changes only the passages around it; the vectors of the others are kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy

from semsearch.corpus.texts import split_sentences
from semsearch.protocols import TokenSpans

#: Clause ends in scripts without spaces.
_CLAUSE_ENDS = "、，；："


class _Piece(NamedTuple):
    """A sentence, or a part of one that is too long for a passage."""

    end: int
    tokens: int
    rank: tuple[bool, int]  # a passage ends at the lowest rank within its limits


def passage_spans(text: str, tokens: TokenSpans, max_tokens: int) -> list[tuple[int, int]]:
    """Character ranges [start, end) of the passages of a text, in order.

    Args:
        text: the document.
        tokens: the positions of its tokens, shape (n, 2), as returned by `Encoder.token_spans`.
        max_tokens: the most tokens in a passage; all but the last have at least half as many.

    Returns:
        Ranges that cover the whole text except white space around passages.
    """
    if len(tokens) <= max_tokens:
        return [_trimmed(text, 0, len(text))]
    spans = []
    start = 0
    for end in _passage_ends(list(_pieces(text, tokens, max_tokens)), max_tokens):
        first, last = _trimmed(text, start, end)
        if first < last:
            spans.append((first, last))
        start = end
    return spans


def fitting_spans(
    text: str, token_spans: Callable[[str], TokenSpans], max_tokens: int
) -> list[tuple[int, int]]:
    """Like `passage_spans`, but passages also keep to the limit when tokenised on their own.

    If a word's tokens depend on the space before it (byte-level BPE), the first word of a passage
    may have more tokens than in the document.
    """
    if len(text.encode()) <= max_tokens:  # a token is at least a byte
        return [_trimmed(text, 0, len(text))]
    tokens = token_spans(text)
    limit = max_tokens
    while True:
        spans = passage_spans(text, tokens, limit)
        parts = [text[i:j] for i, j in spans if j - i < len(text)]  # the whole text fits
        most = max((len(token_spans(part)) for part in parts), default=0)
        if most <= max_tokens or limit == 1:
            return spans
        limit = max(1, limit - (most - max_tokens))


def _passage_ends(pieces: list[_Piece], max_tokens: int) -> Iterator[int]:
    first = 0
    while first < len(pieces):
        size = 0
        end = first
        candidates = []
        while end < len(pieces) and size + pieces[end].tokens <= max_tokens:
            size += pieces[end].tokens
            end += 1
            if 2 * size >= max_tokens:
                candidates.append(end)
        if end < len(pieces) and candidates:
            end = min(candidates, key=lambda last: pieces[last - 1].rank)
        yield pieces[end - 1].end
        first = end


def _pieces(text: str, tokens: TokenSpans, max_tokens: int) -> Iterator[_Piece]:
    starts = tokens[:, 0]
    position = token = 0
    for sentence in split_sentences(text):
        end = position + len(sentence)
        after = int(numpy.searchsorted(starts, end))
        cuts = [(int(starts[cut]), cut) for cut in _cuts(text, starts, token, after, max_tokens)]
        for stop, cut in [*cuts, (end, after)]:
            yield _Piece(stop, cut - token, _rank(text[position:stop]))
            position, token = stop, cut


def _cuts(
    text: str, starts: numpy.ndarray, first: int, after: int, max_tokens: int
) -> Iterator[int]:
    """The tokens before which an overlong sentence is cut: at clause or word ends, if any."""
    while after - first > max_tokens:
        cut = first + max_tokens
        for candidate in range(cut, first + max_tokens // 2, -1):
            before = text[int(starts[candidate]) - 1]
            if before.isspace() or before in _CLAUSE_ENDS:
                cut = candidate
                break
        yield cut
        first = cut


def _rank(piece: str) -> tuple[bool, int]:
    ends_paragraph = "\n" in piece[len(piece.rstrip()) :]
    return (not ends_paragraph, zlib.crc32(piece.strip().encode()))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    part = text[start:end]
    return end - len(part.lstrip()), start + len(part.rstrip())
