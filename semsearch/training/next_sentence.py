"""Pairs of spans for next-sentence prediction (Devlin et al. 2019, section 3.1 and appendix A.2).

A document is cut into runs of sentences that fit, and each run is split at a random sentence end
into two spans. Exactly half of the pairs then exchange their second spans, so that each of these
follows a span of another document. True and false second spans thus differ in nothing else, and
spans of similar length are exchanged: a model cannot distinguish them by their length or their
place in the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Places = NDArray[numpy.int64]

#: Fraction of runs that are shorter than they could be, as in BERT's published code.
SHORT_RUNS = 0.1
#: How many of the following places are searched for a span to swap.
SEARCHED = 1000


class Tokens(NamedTuple):
    """The word pieces of a corpus as one array.

    ``sentences`` has the start of each sentence and, last, the end: sentence i is
    ``ids[sentences[i]:sentences[i + 1]]``; ``documents`` divides ``sentences`` in the same way.
    """

    ids: NDArray[numpy.int32]
    sentences: Places
    documents: Places


class Pairs(NamedTuple):
    """Pairs of spans as token ranges [start, end), shape (n, 2), and whether the second is next."""

    first: Places
    second: Places
    is_next: NDArray[numpy.bool_]

    def lengths(self) -> Places:
        """The number of tokens of each pair, without special tokens, shape (n,)."""
        lengths: Places = (self.first[:, 1] - self.first[:, 0]) + (
            self.second[:, 1] - self.second[:, 0]
        )
        return lengths


def tokens_of(documents: Iterable[Sequence[Sequence[int]]]) -> Tokens:
    """The tokens of documents, given as sentences of word pieces; empty sentences are skipped."""
    ids: list[NDArray[numpy.int32]] = []
    sentence_lengths, document_lengths = [0], [0]
    for document in documents:
        kept = [sentence for sentence in document if len(sentence)]
        ids += [numpy.array(sentence, numpy.int32) for sentence in kept]
        sentence_lengths += [len(sentence) for sentence in kept]
        document_lengths.append(len(kept))
    return Tokens(
        numpy.concatenate([numpy.zeros(0, numpy.int32), *ids]),
        numpy.cumsum(sentence_lengths, dtype=numpy.int64),
        numpy.cumsum(document_lengths, dtype=numpy.int64),
    )


def next_sentence_pairs(tokens: Tokens, room: int, generator: numpy.random.Generator) -> Pairs:
    """Pairs from all documents of two or more sentences, half of them true.

    Pairs whose spans could be exchanged only within one document (if it is about half of the
    corpus) are left out.

    Args:
        tokens: the corpus; at least four of its documents have two sentences.
        room: maximum tokens per pair, without special tokens; the longer span is cut.
        generator: draws where runs end, where they are split, and which spans are exchanged.
    """
    runs = numpy.array(list(_runs(tokens, room, generator)), numpy.int64).reshape(-1, 4)
    owners, starts, cuts, ends = runs.T
    boundaries = tokens.sentences
    first = numpy.stack([boundaries[starts], boundaries[cuts]], axis=1)
    second = numpy.stack([boundaries[cuts], boundaries[ends]], axis=1)
    exchanged = generator.permutation(len(runs))[: len(runs) // 2]
    lengths = second[exchanged, 1] - second[exchanged, 0]
    exchanged = exchanged[numpy.argsort(lengths, kind="stable")]  # ties stay in random order
    givers = exchanged[_givers(owners[exchanged])]
    second[exchanged] = second[givers]
    is_next = numpy.ones(len(runs), bool)
    is_next[exchanged] = False
    first, second = _fitted(first, second, room)
    foreign = numpy.ones(len(runs), bool)
    foreign[exchanged] = owners[givers] != owners[exchanged]
    return Pairs(first[foreign], second[foreign], is_next[foreign])


def _runs(
    tokens: Tokens, room: int, generator: numpy.random.Generator
) -> Iterable[tuple[int, int, int, int]]:
    """Runs as (document, start, cut, end) in sentences, at least one on each side of the cut."""
    boundaries = tokens.sentences
    for document in range(len(tokens.documents) - 1):
        start, last = tokens.documents[document : document + 2].tolist()
        while last - start >= 2:
            is_short = generator.random() < SHORT_RUNS
            wanted = int(generator.integers(2, room + 1)) if is_short else room
            fits = int(numpy.searchsorted(boundaries, boundaries[start] + wanted, "right")) - 1
            end = min(max(fits, start + 2), last)
            yield document, start, int(generator.integers(start + 1, end)), end
            start = end


def _givers(owners: Places) -> Places:
    """A permutation that gives each place a nearby one of another owner.

    If one owner has about half of all places, some are given a place of the same owner.
    """
    count = len(owners)
    givers = numpy.roll(numpy.arange(count), -1)
    for place in numpy.flatnonzero(owners == owners[givers]):
        others = (place + numpy.arange(1, min(count, SEARCHED))) % count
        fits = (owners[givers[others]] != owners[place]) & (owners[givers[place]] != owners[others])
        if fits.any():
            other = others[numpy.argmax(fits)]
            givers[[place, other]] = givers[[other, place]]
    return givers


def _fitted(first: Places, second: Places, room: int) -> tuple[Places, Places]:
    """Both spans cut to fit, the longer one first; tokens are cut only at their outer ends."""
    one, other = first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]
    kept = numpy.minimum(one, numpy.maximum(room - other, room // 2))
    first[:, 0] = first[:, 1] - kept
    second[:, 1] = second[:, 0] + numpy.minimum(other, room - kept)
    return first, second
