"""The choice of a precision, and the quality gate of int8."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from semsearch.encoders import load_encoder, quantization
from semsearch.encoders.openvino import runtime
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.quantization import agreement, nearest
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import ModelFacts
from semsearch.errors import DatasetNotFoundError, EncoderError
from semsearch.evaluation import datasets
from semsearch.evaluation.datasets import RetrievalSet, read_scifact

LETTERS = "abcdef"


def test_the_precision_used(plain_bert, monkeypatch):
    monkeypatch.setattr(runtime, "_has_bf16", lambda: True)
    found = [float_precision(one) for one in (Precision.AUTO, Precision.FP32, Precision.BF16)]
    assert found == [Precision.BF16, Precision.FP32, Precision.BF16]
    monkeypatch.setattr(runtime, "_has_bf16", lambda: False)
    assert float_precision(Precision.AUTO) is Precision.FP32
    with pytest.raises(EncoderError):
        load_encoder(str(plain_bert), precision="bf16")
    assert load_encoder(str(plain_bert)).description()["precision"] == "fp32"


def test_torch_uses_the_requested_precision(plain_bert):
    expected = load_encoder(str(plain_bert), device="cpu").encode_queries(["a b c"])
    half = load_encoder(str(plain_bert), device="cpu", precision="bf16")
    assert half.description()["precision"] == "bf16"
    assert half.encode_queries(["a b c"]).dtype == numpy.float32
    assert 0.99 < float((half.encode_queries(["a b c"]) * expected).sum()) < 1 - 1e-8
    with pytest.raises(EncoderError):
        load_encoder(str(plain_bert), device="cpu", precision="int8")


def test_int8_is_refused_where_products_overflow(plain_bert, monkeypatch):
    monkeypatch.setattr(quantization, "overflows", lambda: True)
    encoder = load_encoder(str(plain_bert), precision="int8")
    for use in (lambda: encoder.encode_documents(["a b"]), encoder.description):
        with pytest.raises(EncoderError):
            use()
    expected = load_encoder(str(plain_bert)).encode_queries(["a b"])
    numpy.testing.assert_array_equal(encoder.encode_queries(["a b"]), expected)


def test_products_overflow_on_x86_without_vnni():
    processor = Path("/proc/cpuinfo").read_text()
    if "GenuineIntel" in processor or "AuthenticAMD" in processor:
        assert quantization.overflows() == ("vnni" not in processor)


class TestInt8:
    """A tiny model with random weights, measured on a small data set."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        """An empty cache, a small data set, and a processor that is suitable."""
        texts = [" ".join(LETTERS[i:] + LETTERS[:j]) for i in range(6) for j in range(6)]
        documents = {str(number): text for number, text in enumerate(texts)}
        queries = {name: documents[name] for name in ("1", "14", "30")}
        small = RetrievalSet("small", documents, queries, {name: {name: 1} for name in queries})
        monkeypatch.setattr(datasets, "read_scifact", lambda split: small)
        monkeypatch.setattr(quantization, "overflows", lambda: False)
        monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
        return tmp_path

    def test_a_passing_model_encodes_documents(self, plain_bert, cache, monkeypatch):
        monkeypatch.setattr(quantization, "AGREEMENT", 0)
        encoder = load_encoder(str(plain_bert), precision="int8")
        assert isinstance(encoder, OpenVINOEncoder)
        description = encoder.description()
        json.dumps(description)
        assert description["precision"] == "int8"
        assert 0.3 < description["agreement"] <= 1
        plain = load_encoder(str(plain_bert))
        text = ["a b c d e f"]
        numpy.testing.assert_array_equal(encoder.encode_queries(text), plain.encode_queries(text))
        cosine = float((encoder.encode_documents(text) * plain.encode_documents(text)).sum())
        assert 0.9 < cosine < 1 - 1e-7
        (file,) = cache.glob("int8-*/model.xml")
        assert "FakeQuantize" in file.read_text("utf-8")
        monkeypatch.setattr(quantization, "_quantize", None)  # cannot be called again
        again = load_encoder(str(plain_bert), precision="int8").encode_documents(text)
        numpy.testing.assert_array_equal(again, encoder.encode_documents(text))

    @pytest.mark.parametrize(("found", "passes"), [(0.93, True), (0.929, False), ("nan", False)])
    def test_the_gate(self, plain_bert, monkeypatch, found, passes):
        monkeypatch.setattr(quantization, "agreement", lambda *_: float(found))
        encoder = load_encoder(str(plain_bert), precision="int8")
        if passes:
            assert encoder.description()["agreement"] == found
        else:
            with pytest.raises(EncoderError, match=f"agreement {found}"):
                encoder.description()

    def test_without_the_data_set_it_is_not_quantised(self, plain_bert, monkeypatch, tmp_path):
        monkeypatch.setattr(quantization, "quantize", None)  # cannot be called
        monkeypatch.setattr(datasets, "read_scifact", read_scifact)
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        with pytest.raises(DatasetNotFoundError):
            load_encoder(str(plain_bert), precision="int8").description()


def test_agreement():
    """Of lists with all ten texts in another order, and with five texts in common."""
    one = numpy.arange(20).reshape(2, 10)
    other = numpy.array([[*range(9, -1, -1)], [*range(15, 25)]])
    assert (agreement(one, one), agreement(one, other)) == (1, 0.75)


def test_the_nearest_texts_are_ranked_with_the_prompts():
    """By hand: the cosines of texts with the query fall with their distance from it."""

    class Angles:
        facts = ModelFacts(2, 10, [], 0, {"query": "1", "document": "-"}, [])

        def encode(self, texts, prompt):
            angles = numpy.radians([float(prompt + text) for text in texts])
            return numpy.stack([numpy.cos(angles), numpy.sin(angles)], axis=1)

    texts = [str(number) for number in range(25)]  # read as 0, -1 ... -24
    found = nearest(Angles(), Angles(), ["0", "1.5"], texts)  # read as 10 and 11.5
    assert found.tolist() == [[*range(10)]] * 2


@pytest.mark.nightly
def test_minilm_passes(data, tmp_path, monkeypatch):
    """The whole gate takes minutes; this uses 60 claims, the cited abstracts and 100 others."""
    if quantization.overflows():
        pytest.skip("this processor does not support int8")
    monkeypatch.setenv("SEMSEARCH_DATA", str(data))
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
    whole = read_scifact()
    queries = dict(list(whole.queries.items())[:60])
    cited = {document for name in queries for document in whole.qrels[name]}
    others = [name for name in whole.documents if name not in cited][:100]
    documents = {name: whole.documents[name] for name in [*cited, *others]}
    small = whole._replace(documents=documents, queries=queries)
    monkeypatch.setattr(datasets, "read_scifact", lambda split: small)
    assert load_encoder("minilm", precision="int8").description()["agreement"] > 0.93
