"""Pairs of spans for next-sentence prediction (Devlin et al. 2019, section 3.1 and appendix A.2).

A document is cut into runs of sentences that fit, a run at a random sentence end into a first and
a second span. For exactly half of the pairs the second spans are then handed round, so that each
stands behind a span of another document. Thus second spans that are next and those that are
not are alike in all but this, and spans of like length are exchanged: a model cannot
distinguish them by their length or their place in the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy
from numpy.typing import NDArray

Places = NDArray[numpy.int64]

#: How many runs are shorter than they could be, as in BERT's published code.
SHORT_RUNS = 0.1
#: How far a span is taken from that could have gone elsewhere.
SEARCHED = 1000


class Tokens(NamedTuple):
    """The word pieces of a corpus in a row.

    ``sentences`` has where sentences begin and, last, the end: sentence i is
    ``ids[sentences[i]:sentences[i + 1]]``; ``documents`` has the same for the places of sentences.
    """

    ids: NDArray[numpy.int32]
    sentences: Places
    documents: Places


class Pairs(NamedTuple):
    """Pairs of spans: tokens [start, end) of both, shape (n, 2), and whether the second is next."""

    first: Places
    second: Places
    is_next: NDArray[numpy.bool_]

    def take(self, rows: Places) -> Pairs:
        """Some of them."""
        return Pairs(self.first[rows], self.second[rows], self.is_next[rows])

    def lengths(self) -> Places:
        """How many tokens each pair has, special ones not counted."""
        lengths: Places = (self.first[:, 1] - self.first[:, 0]) + (
            self.second[:, 1] - self.second[:, 0]
        )
        return lengths


def tokens_of(documents: Iterable[Sequence[Sequence[int]]]) -> Tokens:
    """Documents, as sentences, as word pieces, in a row; sentences without any are left out."""
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
    """Pairs from all documents of two sentences or more, half of them true.

    Spans that could only be exchanged within their document (it is about half of the corpus) are
    left out.

    Args:
        tokens: the corpus; at least four of its documents have two sentences.
        room: how many tokens a pair may have, special ones not counted; the longer span gives way.
        generator: draws where runs end, where they are cut, and what is exchanged.
    """
    runs = numpy.array(list(_runs(tokens, room, generator)), numpy.int64).reshape(-1, 4)
    owners, starts, cuts, ends = runs.T
    boundaries = tokens.sentences
    first = numpy.stack([boundaries[starts], boundaries[cuts]], axis=1)
    second = numpy.stack([boundaries[cuts], boundaries[ends]], axis=1)
    exchanged = generator.permutation(len(runs))[: len(runs) // 2]
    lengths = second[exchanged, 1] - second[exchanged, 0]
    exchanged = exchanged[numpy.argsort(lengths, kind="stable")]  # equal ones stay in random order
    givers = exchanged[_givers(owners[exchanged])]
    second[exchanged] = second[givers]
    is_next = numpy.ones(len(runs), bool)
    is_next[exchanged] = False
    first, second = _fitted(first, second, room)
    foreign = numpy.ones(len(runs), bool)
    foreign[exchanged] = owners[givers] != owners[exchanged]
    return Pairs(first, second, is_next).take(numpy.flatnonzero(foreign))


def _runs(
    tokens: Tokens, room: int, generator: numpy.random.Generator
) -> Iterable[tuple[int, int, int, int]]:
    """Document, first sentence, sentence of the cut, end: at least one sentence on each side."""
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
    """For each place another one of another owner, near it, each taken once.

    Where one owner has about half of all places, some are left with their own kind.
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
    """Both spans cut to fit, the longer one first: where they meet, nothing is lost."""
    one, other = first[:, 1] - first[:, 0], second[:, 1] - second[:, 0]
    kept = numpy.minimum(one, numpy.maximum(room - other, room // 2))
    first[:, 0] = first[:, 1] - kept
    second[:, 1] = second[:, 0] + numpy.minimum(other, room - kept)
    return first, second
