"""The choice of a precision, and the quality gate of int8."""

from __future__ import annotations

import json

import numpy
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import ndcg_score

from semsearch.encoders import load_encoder, parity, quantization
from semsearch.encoders.openvino import runtime
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.parity import HeldOut, Parity, measure_parity
from semsearch.encoders.specs import Precision
from semsearch.errors import DatasetNotFoundError, EncoderError
from semsearch.evaluation import datasets
from semsearch.evaluation.datasets import RetrievalSet, ScoredPair, read_scifact, read_stsbenchmark

LETTERS = "abcdef"


@pytest.fixture
def processor(monkeypatch):
    """Pretends that this processor supports bf16, or does not."""

    def pretend(has_bf16):
        monkeypatch.setattr(runtime, "_has_bf16", lambda: has_bf16)

    return pretend


@pytest.mark.parametrize(
    ("asked", "has_bf16", "expected"),
    [
        (Precision.AUTO, True, Precision.BF16),
        (Precision.AUTO, False, Precision.FP32),
        (Precision.FP32, True, Precision.FP32),
        (Precision.BF16, True, Precision.BF16),
    ],
)
def test_the_precision_used(processor, asked, has_bf16, expected):
    processor(has_bf16)
    assert float_precision(asked) is expected


def test_unsupported_bf16_is_refused(processor, plain_bert):
    processor(False)
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
    with pytest.raises(EncoderError):
        encoder.encode_documents(["a b"])
    with pytest.raises(EncoderError):
        encoder.description()
    expected = load_encoder(str(plain_bert)).encode_queries(["a b"])
    numpy.testing.assert_array_equal(encoder.encode_queries(["a b"]), expected)


class TestInt8:
    """A tiny model with random weights, measured on small data sets."""

    @pytest.fixture(autouse=True)
    def exact_products(self, monkeypatch):
        monkeypatch.setattr(quantization, "overflows", lambda: False)

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
        return tmp_path

    @pytest.fixture(autouse=True)
    def small_sets(self, monkeypatch):
        texts = [" ".join(LETTERS[i:] + LETTERS[:j]) for i in range(6) for j in range(6)]
        documents = {str(number): text for number, text in enumerate(texts)}
        queries = {name: documents[name] for name in ("1", "14", "30")}
        qrels = {name: {name: 1} for name in queries}
        pairs = [ScoredPair(*item) for item in zip(texts, texts[1:], range(35), strict=False)]
        monkeypatch.setattr(datasets, "read_stsbenchmark", lambda split: pairs)
        small = RetrievalSet("small", documents, queries, qrels)
        monkeypatch.setattr(datasets, "read_scifact", lambda split: small)

    def accept_any_loss(self, monkeypatch):
        for limit, value in {"STS_LOSS": 100, "NDCG_LOSS": 100, "AGREEMENT": 0}.items():
            monkeypatch.setattr(parity, limit, value)

    def test_a_passing_model_encodes_documents(self, plain_bert, cache, monkeypatch):
        self.accept_any_loss(monkeypatch)
        encoder = load_encoder(str(plain_bert), precision="int8")
        assert isinstance(encoder, OpenVINOEncoder)
        description = encoder.description()
        json.dumps(description)
        assert description["precision"] == "int8"
        assert set(description["parity"]) == set(Parity._fields)
        plain = load_encoder(str(plain_bert))
        text = ["a b c d e f"]
        numpy.testing.assert_array_equal(encoder.encode_queries(text), plain.encode_queries(text))
        cosine = float((encoder.encode_documents(text) * plain.encode_documents(text)).sum())
        assert 0.9 < cosine < 1 - 1e-7
        (file,) = cache.glob("int8-*/model.xml")
        assert "FakeQuantize" in file.read_text("utf-8")
        monkeypatch.setattr(quantization, "_quantize", None)  # cannot be called again
        again = load_encoder(str(plain_bert), precision="int8")
        numpy.testing.assert_array_equal(
            again.encode_documents(text), encoder.encode_documents(text)
        )

    def test_too_much_loss_is_refused(self, plain_bert, monkeypatch):
        monkeypatch.setattr(parity, "AGREEMENT", 1.1)
        with pytest.raises(EncoderError, match=r"agreement [01]\."):
            load_encoder(str(plain_bert), precision="int8").description()

    def test_without_data_sets_it_is_not_quantised(self, plain_bert, monkeypatch, tmp_path):
        monkeypatch.setattr(quantization, "quantize", None)  # cannot be called
        monkeypatch.setattr(datasets, "read_stsbenchmark", read_stsbenchmark)
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        with pytest.raises(DatasetNotFoundError):
            load_encoder(str(plain_bert), precision="int8").description()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({}, None),
        ({"sts": 81.79}, "STS Benchmark 81.79 (fp32 82.00)"),
        ({"ndcg": 63.9}, "SciFact nDCG@10 63.90 (fp32 64.50)"),
        ({"agreement": 0.929}, "top 10 agreement 0.929"),
        ({"sts": 82.5, "ndcg": 65.0, "agreement": 1.0}, None),
        ({"agreement": float("nan")}, "top 10 agreement nan"),
    ],
)
def test_the_gate(change, fault):
    """The limits: 0.2 Spearman points, 0.5 points of nDCG@10, 0.93 of the top 10."""
    passing = Parity(82.0, 81.81, 64.5, 64.01, 0.93)
    assert passing._replace(**change).faults() == ([] if fault is None else [fault])


def test_parity_equals_independent_measures():
    """nDCG@10 by scikit-learn, Spearman by scipy over all scores, agreement by sets."""
    random = numpy.random.default_rng(3)
    texts = [f"text {number}" for number in range(60)]
    table = {
        kind: {text: unit(random.normal(size=8)) for text in texts} for kind in ("exact", "other")
    }
    queries = {f"q{number}": texts[number] for number in range(10)}
    documents = {f"d{number}": texts[number] for number in range(10, 60)}
    qrels = {q: dict.fromkeys(random.choice(list(documents), 3), 1) for q in queries}
    pairs = [ScoredPair(texts[i], texts[i + 1], float(random.random())) for i in range(50)]
    asked = [*queries.values(), *texts[30:50]]
    held_out = HeldOut(pairs, RetrievalSet("small", documents, queries, qrels), asked)

    class Table:
        def __init__(self, kind):
            self.vectors = table[kind]

        def encode_documents(self, texts):
            return numpy.array([self.vectors[text] for text in texts], numpy.float32)

        encode_queries = encode_documents

    found = measure_parity(held_out, Table("exact"), Table("other"))
    gains = numpy.array([[qrels[q].get(d, 0) for d in documents] for q in queries])
    tops = []
    for kind, ndcg, sts in (
        ("exact", found.ndcg_fp32, found.sts_fp32),
        ("other", found.ndcg, found.sts),
    ):
        matrix = table[kind]
        stored = numpy.array([matrix[text] for text in documents.values()])
        scores = numpy.array([matrix[text] for text in asked]) @ stored.T
        ndcg_of_queries = ndcg_score(gains, scores[: len(queries)], k=10)
        assert ndcg == pytest.approx(100 * ndcg_of_queries, abs=1e-4)
        cosines = [matrix[pair.left] @ matrix[pair.right] for pair in pairs]
        gold = [pair.gold for pair in pairs]
        assert sts == pytest.approx(100 * spearmanr(cosines, gold).statistic, abs=1e-4)
        tops.append([set(row) for row in numpy.argsort(-scores, axis=1)[:, :10]])
    shared = [len(a & b) / 10 for a, b in zip(*tops, strict=True)]
    assert found.agreement == pytest.approx(numpy.mean(shared))


def unit(vector):
    return vector / numpy.linalg.norm(vector)


@pytest.mark.nightly
def test_minilm_passes(data, tmp_path, monkeypatch):
    """The whole gate takes minutes; this uses 60 claims, the cited abstracts and 100 others."""
    if quantization.overflows():
        pytest.skip("this processor does not support int8")
    monkeypatch.setenv("SEMSEARCH_DATA", str(data))
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
    whole = read_scifact()
    assert (len(whole.documents), len(whole.queries)) == (5183, 300)
    queries = dict(list(whole.queries.items())[:60])
    qrels = {name: whole.qrels[name] for name in queries}
    cited = {document for relevant in qrels.values() for document in relevant}
    others = [name for name in whole.documents if name not in cited][:100]
    documents = {name: whole.documents[name] for name in [*cited, *others]}
    small = RetrievalSet("small", documents, queries, qrels)
    monkeypatch.setattr(datasets, "read_scifact", lambda split: small)
    monkeypatch.setattr(parity, "NDCG_LOSS", 1.0)  # each claim weighs more here
    measured = load_encoder("minilm", precision="int8").description()["parity"]
    assert measured["sts_fp32"] == pytest.approx(82.03, abs=0.01)
    assert measured["sts"] > 81.83
    assert measured["agreement"] > 0.93
