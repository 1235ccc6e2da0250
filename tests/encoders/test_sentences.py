"""The method `encode`, compatible with SentenceTransformer's."""

from __future__ import annotations

import numpy
import pytest

from semsearch import load_encoder
from semsearch.errors import ArgumentError

TEXTS = ["a red fish", "a blue bird", "a red fish swims"]


def test_one_and_several(hashing):
    several = hashing.encode(TEXTS, batch_size=2, show_progress_bar=False)
    assert (several == hashing.encode_documents(TEXTS)).all()
    assert numpy.array_equal(hashing.encode(TEXTS[1]), several[1])


def test_queries_have_their_own_prompt(hashing, monkeypatch):
    monkeypatch.setattr(hashing, "encode_queries", lambda texts: numpy.full((len(texts), 2), 7))
    assert hashing.encode(TEXTS, "query")[0].tolist() == [7, 7]
    assert hashing.encode("a", prompt_name="document").shape == (256,)


def test_it_works_with_sentence_transformers(hashing):
    """Its functions accept our encoders in place of its own models."""
    from sentence_transformers.util import paraphrase_mining

    (score, *best), *_ = paraphrase_mining(hashing, TEXTS)
    assert sorted(best) == [0, 2]
    assert score == pytest.approx(3 / numpy.sqrt(3 * 4), abs=1e-6)  # 3 shared words of 3 and 4


def test_mistakes():
    with pytest.raises(ArgumentError):
        load_encoder("hashing").encode([1])
