"""Next-sentence pairs: half are true, and only the text reveals which."""

from __future__ import annotations

import numpy
import pytest

from semsearch.training.masked_pairs import next_sentence_pairs, tokens_of


@pytest.fixture(scope="module")
def tokens():
    """60 documents of 2 to 12 sentences; each token's id is its position in the corpus."""
    generator = numpy.random.default_rng(0)
    place = 0
    documents = []
    for _ in range(60):
        documents.append([])
        for _ in range(generator.integers(2, 13)):
            length = int(generator.integers(1, 20))
            documents[-1].append(list(range(place, place + length)))
            place += length
    return tokens_of(documents)


def pairs_of(tokens, room=60, seed=0):
    return next_sentence_pairs(tokens, room, numpy.random.default_rng(seed))


def owners(tokens, spans):
    """The index of the document in which each span begins."""
    starts = tokens.sentences[tokens.documents[:-1]]
    return numpy.searchsorted(starts, spans[:, 0], "right") - 1


def test_half_of_the_pairs_are_true(tokens):
    for seed in range(5):
        pairs = pairs_of(tokens, seed=seed)
        assert pairs.is_next.mean() == pytest.approx(0.5, abs=0.05)
        assert len(pairs.is_next) > 90


def test_true_pairs_are_contiguous_and_others_cross_documents(tokens):
    pairs = pairs_of(tokens)
    follows = pairs.first[:, 1] == pairs.second[:, 0]
    assert (follows == pairs.is_next).all()
    same = owners(tokens, pairs.first) == owners(tokens, pairs.second)
    assert (same == pairs.is_next).all()


def test_documents_of_one_sentence_are_left_out():
    two = [[[3], [4]], [[5], [], [6]], [[7], [8]], [[9], [10]]]
    pairs = pairs_of(tokens_of([[[1, 2]], *two, [[11]]]))
    assert sorted(pairs.first[:, 0].tolist()) == [2, 4, 6, 8]
