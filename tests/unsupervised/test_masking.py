"""The proportions of masked language modelling: 15 % of the tokens, of these 80/10/10."""

from __future__ import annotations

import numpy
import pytest

from semsearch.unsupervised.masking import mask_tokens

MASK, WORDS = 4, numpy.arange(5, 1000)


@pytest.fixture(scope="module")
def masked():
    """200 texts of 100 words, between special tokens and padding, and what became of them."""
    ids = numpy.random.default_rng(1).choice(WORDS, (200, 110))
    ids[:, 0], ids[:, 101], ids[:, 102:] = 2, 3, 0
    maskable = ids > 4
    return ids, maskable, mask_tokens(ids, maskable, MASK, WORDS, numpy.random.default_rng(2))


def test_fifteen_percent_of_each_text(masked):
    ids, _, (_, places, _) = masked
    assert (numpy.bincount(places // ids.shape[1], minlength=200) == 15).all()
    assert len(set(places.tolist())) == 200 * 15


def test_of_these_80_10_10(masked):
    _, _, (changed, places, answers) = masked
    now = changed.ravel()[places]
    assert (now == MASK).sum() == 0.8 * 3000
    replaced = (now != MASK) & (now != answers)
    # A token drawn at random is the token itself once in 995 times.
    assert 295 <= replaced.sum() <= 300
    assert (now == answers).sum() == 3000 - 2400 - replaced.sum()
    assert set(now[replaced].tolist()) <= set(WORDS.tolist())
    assert len(set(now[replaced].tolist())) > 200


def test_the_rest_stays(masked):
    ids, maskable, (changed, places, answers) = masked
    others = numpy.setdiff1d(numpy.arange(ids.size), places)
    assert (changed.ravel()[others] == ids.ravel()[others]).all()
    assert (answers == ids.ravel()[places]).all()
    assert maskable.ravel()[places].all()


def test_it_is_dynamic_and_seeded(masked):
    ids, maskable, first = masked
    again, other = (
        mask_tokens(ids, maskable, MASK, WORDS, numpy.random.default_rng(seed)) for seed in (2, 3)
    )
    assert (again.ids == first.ids).all()
    assert len(set(other.places) & set(first.places)) < 0.25 * len(first.places)


def test_a_short_text_has_one():
    maskable = numpy.array([[False, True, True, False]])
    ids = numpy.array([[2, 8, 9, 3]])
    assert len(mask_tokens(ids, maskable, MASK, WORDS, numpy.random.default_rng(0)).places) == 1
