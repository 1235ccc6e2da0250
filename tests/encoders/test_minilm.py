"""The bundled encoder, and vectors cut to their leading dimensions, as in sentence-transformers."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch import Document, Index
from semsearch.encoders import current_fingerprint, load_encoder, load_reranker
from semsearch.encoders.model_folder import find_model
from semsearch.errors import EncoderError

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


def test_reads_256_tokens_including_special_ones(encoder):
    assert encoder.encode_documents([]).shape == (0, 384)
    assert encoder.max_document_tokens == 254
    words = " ".join(["word"] * 300)
    cut = " ".join(["word"] * 254)
    left, right = encoder.encode_documents([words, cut])
    assert left @ right == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_cut_vectors_are_those_of_sentence_transformers(plain_bert, device):
    encoder = load_encoder(f"{plain_bert}@5d", device=device, precision="fp32")
    model = SentenceTransformer(str(plain_bert), truncate_dim=5, device="cpu")
    expected = model.encode(SENTENCES, normalize_embeddings=True)
    assert encoder.dimension == 5
    for found in (encoder.encode_documents(SENTENCES), encoder.encode_queries(SENTENCES)):
        numpy.testing.assert_allclose(found, expected, atol=1e-5)


def test_each_dimension_is_another_encoder(plain_bert):
    specs = [str(plain_bert), *(f"{plain_bert}@{name}" for name in ("5d", "6d", "mean@5d"))]
    assert len({load_encoder(spec).fingerprint for spec in specs}) == len(specs)
    for spec in specs:
        assert load_encoder(spec).spec == spec
        assert current_fingerprint(spec) == load_encoder(spec).fingerprint
    with pytest.raises(EncoderError):
        load_encoder(f"{plain_bert}@33d").encode_documents(SENTENCES)
    with pytest.raises(EncoderError):
        load_reranker(f"{plain_bert}@5d")


def test_an_index_remembers_the_dimension(plain_bert, tmp_path):
    with Index.create(tmp_path / "index", f"{plain_bert}@5d") as index:
        index.add([Document(str(n), text) for n, text in enumerate(SENTENCES)])
    with Index.open(tmp_path / "index") as index:
        assert index.search("He will get scared", k=1)[0].document_id == "1"
        assert index.info().spaces[0].dimension == 5
