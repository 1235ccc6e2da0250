"""Next-sentence pairs: half are true, and only the text reveals which."""

from __future__ import annotations

import numpy
import pytest

from semsearch.training.masked_pairs import next_sentence_pairs


@pytest.fixture(scope="module")
def corpus():
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
    return documents


def pairs_of(corpus, room=60, seed=0):
    return next_sentence_pairs(corpus, room, numpy.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(5))
def test_half_of_the_pairs_are_true_and_others_cross_documents(corpus, seed):
    owner = {token: number for number, text in enumerate(corpus) for one in text for token in one}
    pairs = pairs_of(corpus, seed=seed)
    assert len(pairs) > 90
    assert numpy.mean([pair.is_next for pair in pairs]) == pytest.approx(0.5, abs=0.05)
    for first, second, is_next in pairs:
        assert (first[-1] + 1 == second[0]) == is_next
        assert (owner[first[0]] == owner[second[0]]) == is_next
        assert first == list(range(first[0], first[-1] + 1))
        assert second == list(range(second[0], second[-1] + 1))


def test_pairs_fill_the_room_and_are_cut_at_their_outer_ends(corpus):
    lengths = numpy.array([len(one.first) + len(one.second) for one in pairs_of(corpus, 30)])
    assert lengths.max() == 30
    assert numpy.median(lengths) > 20
    spans = [list(range(40 * n, 40 * n + 40)) for n in range(16)]
    for first, second, _ in pairs_of(list(zip(spans[::2], spans[1::2], strict=True)), 30):
        assert (len(first), len(second)) == (15, 15)
        assert (first[-1] % 80, second[0] % 80) == (39, 40)


def test_documents_of_one_sentence_are_left_out():
    two = [[[3], [4]], [[5], [6]], [[7], [8]], [[9], [10]]]
    pairs = pairs_of([[[1, 2]], *two, [[11]]])
    assert sorted(pair.first for pair in pairs) == [[3], [5], [7], [9]]
