"""A dictionary learnt from translated sentences: IBM Model 1 (Brown et al. 1993, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ids = Sequence[int]

ITERATIONS = 6
#: More possible links than these are not weighed at once: the longest pairs are left out.
MOST_LINKS = 40_000_000


def translation_probabilities(
    translations: Sequence[Ids], sources: Sequence[Ids], translated: int, known: int
) -> csr_array:
    """The probability of each source token, given a token of the translation.

    Args:
        translations: the token ids of each translated sentence.
        sources: the token ids of the sentence that it translates.
        translated: how many token ids translations can have.
        known: how many token ids sources can have.

    Returns:
        Shape (translated, known). A row sums to 1 where its token occurs, else to 0.
    """
    from scipy.sparse import csr_array

    token, source, slot = _links(translations, sources, translated)
    pairs, pair = numpy.unique(token * known + source, return_inverse=True)
    row, column = pairs // known, pairs % known
    probability = numpy.ones(len(pairs))
    for _ in range(ITERATIONS):
        # How much of each source token each token of its translation accounts for …
        weight = probability[pair]
        share = weight / numpy.bincount(slot, weight)[slot]
        # … summed up over all sentences, and brought to a sum of 1 for each token.
        count = numpy.bincount(pair, share, len(pairs))
        probability = count / numpy.bincount(row, count, translated + 1)[row]
    is_word = row < translated
    cells = probability[is_word], (row[is_word], column[is_word])
    return csr_array(cells, shape=(translated, known))


def _links(
    translations: Sequence[Ids], sources: Sequence[Ids], nothing: int
) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], NDArray[numpy.int64]]:
    """Each source token with each token of its translation, and with `nothing`.

    Returns:
        The token, the source token, and which occurrence of a source token that is; each of shape
        (links,).
    """
    sizes = [len(s) * (len(t) + 1) for s, t in zip(sources, translations, strict=True)]
    tokens, known, slots = [], [], []
    links = slot = 0
    for place in numpy.argsort(sizes, kind="stable"):
        links += sizes[place]
        if links > MOST_LINKS:
            break
        translation = numpy.array([*translations[place], nothing], numpy.int64)
        source = numpy.array(sources[place], numpy.int64)
        tokens.append(numpy.tile(translation, len(source)))
        known.append(numpy.repeat(source, len(translation)))
        slots.append(numpy.repeat(numpy.arange(slot, slot + len(source)), len(translation)))
        slot += len(source)
    return numpy.concatenate(tokens), numpy.concatenate(known), numpy.concatenate(slots)
