"""Texts of like length side by side, so that little is computed for padding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

Ids = NDArray[numpy.int64]

#: What a model reads at once: a text or, for a cross-encoder, two.
Text: TypeAlias = str | tuple[str, str]


class Batching(NamedTuple):
    """The batches that suit a runtime."""

    tokens: int  #: how many go through the model at once, padding included
    window_characters: int  #: how many are tokenised, and their texts sorted by length, at once
    least_fill: float = 0.0  #: how short the shortest text of a batch may be, as a part of it
    #: Few texts, and those in a batch that are longer than `exact_length`, are padded to a
    #: multiple of so many tokens, where a runtime prepares itself for each shape that it meets.
    few_step: int = 1
    step: int = 1
    exact_length: int = 0


def windows(texts: Sequence[Text], characters: int) -> Iterator[tuple[int, Sequence[Text]]]:
    """Runs of texts of about equal size, each near so many characters.

    Yields:
        Where a run begins, and its texts.
    """
    lengths = [len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts]
    runs = max(1, round(sum(lengths) / characters))
    share = max(1, sum(lengths) / runs)
    start = held = 0
    for end, length in enumerate(lengths, 1):
        held += length
        if held >= share or end == len(lengths):
            yield start, texts[start:end]
            start, held = end, 0


def batches(
    token_ids: Sequence[list[int]],
    tokens: int,
    *,
    at_once: int = 1,
    length_of: Callable[[int], int] = lambda longest: longest,
    least_fill: float = 0.0,
) -> Iterator[tuple[Ids, int]]:
    """The places of texts of like length, long ones first, and the length to pad them to.

    Args:
        token_ids: the texts.
        tokens: how many tokens a batch holds, padding included.
        at_once: how many batches are computed side by side. Texts that fill fewer are shared out
            among so many.
        length_of: to which length a batch is padded whose longest text has so many tokens.
        least_fill: how short the shortest text of a batch may be, as a part of its length.
    """
    lengths = numpy.array([len(ids) for ids in token_ids])
    order = numpy.argsort(-lengths, kind="stable")
    falling = -lengths[order]
    sums = numpy.cumsum(lengths[order])  # of tokens, up to each text and with it
    start = before = 0
    while start < len(order):
        length = max(1, length_of(-int(falling[start])))  # of texts without a token, padding
        filled = int(numpy.searchsorted(falling, -least_fill * length, side="right"))
        share = (int(sums[-1]) - before) / max(1, at_once)  # of the tokens that are left
        shared = int(numpy.searchsorted(sums, before + share, side="right"))
        end = max(start + 1, min(start + tokens // length, filled, shared))
        yield order[start:end], length
        start, before, at_once = end, int(sums[end - 1]), at_once - 1


def padded(token_ids: Sequence[list[int]], length: int, pad_id: int) -> tuple[Ids, Ids]:
    """Ids and attention mask of some texts, each of shape (texts, length)."""
    lengths = numpy.array([len(ids) for ids in token_ids])
    mask = numpy.arange(length) < lengths[:, None]
    ids = numpy.full(mask.shape, pad_id, numpy.int64)
    ids[mask] = numpy.concatenate(token_ids)
    return ids, mask.astype(numpy.int64)
