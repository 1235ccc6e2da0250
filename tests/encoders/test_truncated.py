"""Vectors cut to their leading dimensions, against sentence-transformers' `truncate_dim`."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer

from semsearch import Document, Index, load_encoder
from semsearch.encoders import current_fingerprint, load_reranker
from semsearch.errors import EncoderError

TEXTS = ["a cat sleeps", "the weather is fine", "a b c d"]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_vectors_are_those_of_sentence_transformers(plain_bert, device):
    encoder = load_encoder(f"{plain_bert}@5d", device=device, precision="fp32")
    wanted = SentenceTransformer(str(plain_bert), truncate_dim=5, device="cpu").encode(
        TEXTS, normalize_embeddings=True
    )
    assert encoder.dimension == 5
    for found in (encoder.encode_documents(TEXTS), encoder.encode_queries(TEXTS)):
        numpy.testing.assert_allclose(found, wanted, atol=1e-5)


def test_each_dimension_is_another_encoder(plain_bert):
    specs = [str(plain_bert), *(f"{plain_bert}@{name}" for name in ("5d", "6d", "mean@5d"))]
    assert len({load_encoder(spec).fingerprint for spec in specs}) == len(specs)
    for spec in specs:
        assert load_encoder(spec).spec == spec
        assert current_fingerprint(spec) == load_encoder(spec).fingerprint


def test_an_index_remembers_the_dimension(plain_bert, tmp_path):
    documents = [Document(str(n), text) for n, text in enumerate(TEXTS)]
    with Index.create(tmp_path / "index", f"{plain_bert}@5d") as index, index.writer() as writer:
        writer.upsert(documents)
    with Index.open(tmp_path / "index") as retriever:
        assert retriever.search("the weather is fine", k=1)[0].document_id == "1"
    with Index.open(tmp_path / "index") as index:
        assert index.info().spaces[0].dimension == 5


def test_invalid_dimensions_are_refused(plain_bert):
    with pytest.raises(EncoderError):
        load_encoder(f"{plain_bert}@33d").encode_documents(TEXTS)
    with pytest.raises(EncoderError):
        load_reranker(f"{plain_bert}@5d")
