"""Runtimes are chosen by name."""

from __future__ import annotations

import numpy
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer

from semsearch import encoders as loading
from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.torch_models import TorchEncoder
from semsearch.errors import ArgumentError, EncoderError

TEXTS = ["a b c", "d", "a a a a e f", "b " * 50, "", "f e d c b a"]


def test_runtimes_are_chosen_by_name(plain_bert):
    expected = load_encoder(str(plain_bert), "cpu", "fp32").encode_documents(TEXTS)
    for name, kind in (("openvino", OpenVINOEncoder), ("torch", TorchEncoder)):
        encoder = load_encoder(str(plain_bert), precision="fp32", runtime=name)
        assert isinstance(encoder, kind)
        numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)


def test_a_named_runtime_is_the_only_one(tmp_path):
    """Also if it cannot run the model, here one of averaged word vectors."""
    words = WordEmbeddings(WhitespaceTokenizer([*"abc"]), numpy.eye(3, 8, dtype=numpy.float32))
    SentenceTransformer(modules=[words, Pooling(8, "mean")], device="cpu").save(str(tmp_path))
    with pytest.raises(EncoderError, match="WordEmbeddings"):
        load_encoder(str(tmp_path), runtime="openvino")
    assert isinstance(load_encoder(str(tmp_path)), TorchEncoder)


@pytest.mark.parametrize("load", [load_encoder, load_reranker])
@pytest.mark.parametrize(
    "options", [{"runtime": "onnx"}, {"runtime": "openvino", "device": "cuda"}]
)
def test_mistakes(plain_bert, monkeypatch, load, options):
    monkeypatch.setattr(loading, "check_head", lambda folder: None)
    with pytest.raises(ArgumentError):
        load(str(plain_bert), **options)


@pytest.mark.parametrize("runtime", ["torch", "openvino"])
def test_errors_of_a_runtime_become_encoder_errors(plain_bert, monkeypatch, runtime):
    encoder = load_encoder(str(plain_bert), precision="fp32", runtime=runtime)

    def fail(*arguments):
        raise RuntimeError("CUDA out of memory\nmore about it")

    model = encoder.documents._runtime
    monkeypatch.setattr(model, "run", fail)
    monkeypatch.setattr(model, "run_alone", fail)
    for encode in (encoder.encode_documents, encoder.encode_queries):
        for texts in (TEXTS, TEXTS[:1]):
            with pytest.raises(EncoderError, match="CUDA out of memory$"):
                encode(texts)
