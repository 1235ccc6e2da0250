"""The bundled encoder against plain sentence-transformers."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model

SENTENCES = ["A cat sleeps.", "He will get scared", "Ein Satz auf Deutsch, mit Umlauten: äöü.", "x"]


@pytest.fixture(scope="module")
def plain():
    return SentenceTransformer(str(find_model("minilm").path), device="cpu")


@pytest.fixture(scope="module", params=["openvino", "torch"])
def encoder(request, cache):
    """The encoder on each of its runtimes, in full precision."""
    device = None if request.param == "openvino" else "cpu"
    return load_encoder("minilm", device=device, precision="fp32")


def test_vectors_are_those_of_plain_sentence_transformers(plain, encoder):
    expected = plain.encode(SENTENCES, normalize_embeddings=True)
    for encode in (encoder.encode_documents, encoder.encode_queries):
        vectors = encode(SENTENCES)
        assert vectors.dtype == numpy.float32
        assert vectors.shape == (4, encoder.dimension) == (4, 384)
        numpy.testing.assert_allclose(vectors, expected, atol=1e-4)
        numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_encoding_nothing_gives_no_rows(encoder):
    assert encoder.encode_documents([]).shape == (0, 384)


def test_reads_256_tokens_including_special_ones(encoder):
    assert encoder.max_document_tokens == encoder.max_query_tokens == 254
    words = " ".join(["word"] * 300)
    cut = " ".join(["word"] * 254)
    left, right = encoder.encode_documents([words, cut])
    assert left @ right == pytest.approx(1, abs=1e-6)
