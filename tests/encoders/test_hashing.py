"""The hashing encoder, which needs no model, and the method `encode` of SentenceTransformer."""

from __future__ import annotations

import numpy
import pytest
import torch

from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, EncoderError

TEXTS = ["a red fish", "a blue bird", "a red fish swims"]


def test_texts_that_share_words_are_similar(hashing):
    vectors = hashing.encode_documents(["the red house", "House, red!", "a green tree", "…"])
    numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    # two words of three: 2 / (sqrt(3) * sqrt(2))
    assert vectors[0] @ vectors[1] == pytest.approx(2 / 6**0.5, abs=1e-6)
    assert vectors[0] @ vectors[2] < 0.3


def test_a_word_has_a_place_and_a_sign():
    """By hand, from CRC-32: dog is 0x812c397d, sun 0x51b4cef7."""
    encoder = load_encoder("hashing:8")
    vectors = encoder.encode_queries(["Dog, dog", "sun"])
    assert vectors[0].tolist() == numpy.eye(8)[5].tolist()
    assert vectors[1].tolist() == (-numpy.eye(8))[7].tolist()
    assert encoder.token_spans("a, b").tolist() == [[0, 1], [3, 4]]
    assert encoder.token_spans("").shape == (0, 2)


def test_dimension_is_part_of_the_spec_and_the_fingerprint():
    specs = ("hashing:16", "hashing", "hashing:2", "hashing:65536")
    encoders = [load_encoder(spec) for spec in specs]
    assert [encoder.dimension for encoder in encoders] == [16, 256, 2, 65_536]
    assert len({encoder.fingerprint for encoder in encoders}) == 4
    for spec in ("hashing:1", "hashing:x", "hashing:65537", "hashing@96d"):
        with pytest.raises(EncoderError, match="2 to 65536"):
            load_encoder(spec)


def test_encode(hashing, monkeypatch):
    several = hashing.encode(TEXTS, batch_size=2, show_progress_bar=False)
    assert (several == hashing.encode_documents(TEXTS)).all()
    assert numpy.array_equal(hashing.encode(TEXTS[1], prompt_name="document"), several[1])
    assert isinstance(hashing.encode(TEXTS, convert_to_tensor=True), torch.Tensor)
    monkeypatch.setattr(hashing, "encode_queries", lambda texts: numpy.full((len(texts), 2), 7))
    assert hashing.encode(TEXTS, "query")[0].tolist() == [7, 7]
    with pytest.raises(ArgumentError):
        hashing.encode([1])


def test_encode_works_with_sentence_transformers(hashing):
    """Its functions accept our encoders in place of its own models."""
    from sentence_transformers.util import paraphrase_mining

    (score, *best), *_ = paraphrase_mining(hashing, TEXTS)
    assert sorted(best) == [0, 2]
    assert score == pytest.approx(3 / numpy.sqrt(3 * 4), abs=1e-6)  # 3 shared words of 3 and 4
