"""The adapter for MTEB."""

from __future__ import annotations

from pathlib import Path

import numpy
from frameworks import needs

from semsearch.encoders.hashing import HashingEncoder

needs("mteb")

from mteb.models import EncoderProtocol  # noqa: E402
from mteb.types import PromptType  # noqa: E402

from semsearch.integrations.mteb import SemsearchEncoder  # noqa: E402

BATCHES = [{"text": ["a", "b"]}, {"text": ["c"]}]


def test_is_an_mteb_encoder():
    model = SemsearchEncoder("hashing:32")
    assert isinstance(model, EncoderProtocol)
    meta = model.mteb_model_meta
    assert (meta.name, meta.revision) == ("semsearch/hashing-32", model.model.fingerprint)
    assert meta.embed_dim == 32
    vectors = model.encode(BATCHES)
    assert (vectors == HashingEncoder("hashing:32").encode_documents(["a", "b", "c"])).all()
    numpy.testing.assert_allclose(model.similarity(vectors, vectors), numpy.eye(3), atol=1e-6)


def test_queries_are_encoded_as_such_and_results_do_not_name_where_a_model_is():
    class Located(HashingEncoder):
        def encode_queries(self, texts):
            return ["query", *texts]

        def encode_documents(self, texts):
            return ["document", *texts]

    encoder = Located()
    encoder.spec = str(Path("models", "my model").absolute())
    model = SemsearchEncoder(encoder)
    assert model.mteb_model_meta.name == "semsearch/my-model"
    kinds = {PromptType.query: "query", PromptType.document: "document", None: "document"}
    for kind, expected in kinds.items():
        assert model.encode(BATCHES, prompt_type=kind) == [expected, "a", "b", "c"]
