"""A dictionary from translated sentences: IBM Model 1 (Brown et al. 1993, section 4.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ids = Sequence[int]
Numbers = NDArray[numpy.int64]

ITERATIONS = 6
#: Links (token pairs) in a block, at 50 bytes each while it is processed; and maximum number of
#: blocks kept in memory, at 16 bytes a link. If there are more, all are recomputed each iteration.
LINKS_AT_ONCE, BLOCKS_KEPT = 10_000_000, 10


def translation_probabilities(
    translations: Sequence[Ids], sources: Sequence[Ids], translated: int, known: int
) -> csr_array:
    """The probability of each source token, given a token of the translation.

    Args:
        translations: the token ids of each translated sentence.
        sources: the token ids of the sentence that each one translates.
        translated: vocabulary size of the translations.
        known: vocabulary size of the sources.

    Returns:
        Shape (translated, known). A row sums to 1 if its token occurs, else to 0.
    """
    from scipy.sparse import csr_array

    sizes = [len(s) * (len(t) + 1) for s, t in zip(sources, translations, strict=True)]
    blocks = numpy.cumsum(sizes, dtype=numpy.int64) // LINKS_AT_ONCE
    cuts = [0, *(1 + numpy.flatnonzero(numpy.diff(blocks))).tolist(), len(sizes)]

    def links() -> Iterator[tuple[Numbers, Numbers]]:
        """By block, the token pair of each link, and the occurrence of its source token."""
        for start, end in pairwise(cuts):
            token, source, slot = _links(translations[start:end], sources[start:end], translated)
            yield token * known + source, slot

    pairs = numpy.empty(0, numpy.int64)
    for link, _ in links():
        pairs = numpy.union1d(pairs, link)

    def places() -> Iterator[tuple[Numbers, Numbers]]:
        return ((numpy.searchsorted(pairs, link), slot) for link, slot in links())

    kept = [*places()] if len(cuts) <= 1 + BLOCKS_KEPT else None
    row, column = pairs // known, pairs % known
    probability = numpy.ones(len(pairs))
    for _ in range(ITERATIONS):
        count = numpy.zeros(len(pairs))
        for pair, slot in kept or places():
            # E-step: the share of each source token that each token of its translation explains.
            weight = probability[pair]
            share = weight / numpy.bincount(slot, weight)[slot]
            count += numpy.bincount(pair, share, len(pairs))
        # M-step: the shares, summed over all sentences and normalised for each token.
        probability = count / numpy.bincount(row, count, translated + 1)[row]
    is_word = row < translated
    cells = probability[is_word], (row[is_word], column[is_word])
    return csr_array(cells, shape=(translated, known))


def _links(
    translations: Sequence[Ids], sources: Sequence[Ids], nothing: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Links of each source token to each token of its translation, and to `nothing`.

    Returns:
        The translation's token, the source token, and the number of the source token's
        occurrence; each of shape (links,).
    """
    tokens, known, slots = [], [], []
    slot = 0
    for ids, source in zip(translations, sources, strict=True):
        translation = numpy.array([*ids, nothing], numpy.int64)
        tokens.append(numpy.tile(translation, len(source)))
        known.append(numpy.repeat(numpy.array(source, numpy.int64), len(translation)))
        slots.append(numpy.repeat(numpy.arange(slot, slot + len(source)), len(translation)))
        slot += len(source)
    return numpy.concatenate(tokens), numpy.concatenate(known), numpy.concatenate(slots)
