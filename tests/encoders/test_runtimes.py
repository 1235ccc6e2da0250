"""Runtimes are chosen for a model; their errors name it."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

from semsearch.encoders import load_encoder
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import EncoderError

TEXTS = ["a b c", "d", "a a a a e f", "b " * 50, "", "f e d c b a"]


def test_a_model_that_openvino_cannot_run(tmp_path, caplog):
    """Here, one of averaged word vectors."""
    words = WordEmbeddings(WhitespaceTokenizer([*"abc"]), numpy.eye(3, 8, dtype=numpy.float32))
    SentenceTransformer(modules=[words, Pooling(8, "mean")], device="cpu").save(str(tmp_path))
    assert isinstance(load_encoder(str(tmp_path)), TorchEncoder)
    assert "WordEmbeddings" in caplog.text
    with pytest.raises(EncoderError, match="WordEmbeddings"):
        load_encoder(str(tmp_path), precision="int8")


@pytest.mark.parametrize("device", [None, "cpu"])
def test_errors_of_a_runtime_become_encoder_errors(plain_bert, monkeypatch, device):
    encoder = load_encoder(str(plain_bert), device, "fp32")

    def fail(*arguments):
        raise RuntimeError("CUDA out of memory\nmore about it")

    model = encoder.documents._runtime
    monkeypatch.setattr(model, "run", fail)
    monkeypatch.setattr(model, "run_alone", fail)
    for encode in (encoder.encode_documents, encoder.encode_queries):
        for texts in (TEXTS, TEXTS[:1]):
            with pytest.raises(EncoderError, match="CUDA out of memory$"):
                encode(texts)
