"""The hashing encoder, which needs no model."""

from __future__ import annotations

import numpy
import pytest

from semsearch.encoders import load_encoder
from semsearch.errors import EncoderError


def test_texts_that_share_words_are_similar(hashing):
    vectors = hashing.encode_documents(["the red house", "House, red!", "a green tree", "…"])
    numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    # two words of three: 2 / (sqrt(3) * sqrt(2))
    assert vectors[0] @ vectors[1] == pytest.approx(2 / 6**0.5, abs=1e-6)
    assert vectors[0] @ vectors[2] < 0.3


def test_dimension_is_part_of_the_spec_and_the_fingerprint():
    small, large = load_encoder("hashing:16"), load_encoder("hashing")
    assert (small.dimension, large.dimension) == (16, 256)
    assert small.fingerprint != large.fingerprint


@pytest.mark.parametrize("spec", ["hashing:1", "hashing:x", "hashing:99999999", "hashing@96d"])
def test_impossible_dimensions(spec):
    with pytest.raises(EncoderError, match="2 to 65536"):
        load_encoder(spec)
