"""A model that OpenVINO cannot run, runs on torch, and a warning of one line says why; errors."""

from __future__ import annotations

import subprocess
import sys
from unittest.mock import Mock

import numpy
import pytest
from layouts import static
from sentence_transformers import SentenceTransformer

from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.openvino import conversion
from semsearch.encoders.torch_models import TorchEncoder, TorchReranker
from semsearch.errors import EncoderError

TEXTS = ["a b c", "d"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, without converted models."""
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def failing(monkeypatch):
    """Makes the conversion fail; returns the mock that counts its calls."""

    def fail(error):
        traced = Mock(side_effect=error)
        monkeypatch.setattr(conversion, "_traced", traced)
        return traced

    return fail


def runs_on_torch(spec, caplog):
    caplog.clear()
    encoder = load_encoder(spec)
    assert isinstance(encoder, TorchEncoder)
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"model '{spec}' runs on torch: ")
    assert "\n" not in message
    expected = load_encoder(spec, device="cpu").encode_documents(TEXTS)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (RuntimeError("Check 'x' failed at src/y.cpp:1:\nmore"), 1),
        (MemoryError(), 2),
        (OSError("No space left on device"), 2),
    ],
)
def test_a_refusal_is_remembered_but_not_a_lack_of_resources(
    failing, plain_bert, caplog, cache, error, calls
):
    traced = failing(error)
    for _ in range(2):
        runs_on_torch(str(plain_bert), caplog)
    assert traced.call_count == calls
    assert not list(cache.glob("encoder-*.draft*"))  # no partial conversion is left


def test_vectors_and_scores_that_would_change(plain_bert, classifier, caplog, monkeypatch):
    monkeypatch.setattr(conversion, "PARITY", 1.1)
    monkeypatch.setattr(conversion, "TOLERANCE", -1)
    runs_on_torch(str(plain_bert), caplog)
    assert isinstance(load_reranker(str(classifier())), TorchReranker)


def test_a_cache_that_cannot_be_written(plain_bert, caplog, cache):
    cache.write_text("a file where the folder should be")
    runs_on_torch(str(plain_bert), caplog)


def test_a_model_that_openvino_cannot_run(tmp_path, caplog):
    """Here, one of averaged word vectors, which reads texts of any length."""
    SentenceTransformer(modules=[static()], device="cpu").save(str(tmp_path))
    encoder = load_encoder(str(tmp_path))
    assert isinstance(encoder, TorchEncoder)
    assert encoder.max_document_tokens == 256
    assert "StaticEmbedding" in caplog.text
    with pytest.raises(EncoderError, match="StaticEmbedding"):
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
        for texts in (TEXTS * 3, TEXTS):
            with pytest.raises(EncoderError, match="CUDA out of memory$"):
                encode(texts)


def test_openvino_is_imported_without_telemetry_and_its_converter():
    code = """
import sys
from semsearch.encoders.openvino.runtime import CONVERTER, import_openvino
print(import_openvino().__name__, sys.modules["openvino_telemetry"], CONVERTER in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openvino", "None", "False"]


@pytest.fixture
def run_shapes(plain_bert, monkeypatch):
    """An encoder, and the shapes of the batches that it would have run."""
    encoder = load_encoder(str(plain_bert), precision="fp32")
    shapes = []

    def run(features):
        shapes.append(features["input_ids"].shape)
        return numpy.ones((len(features["input_ids"]), 32), numpy.float32) / 32**0.5

    runtime = encoder.queries._runtime
    monkeypatch.setattr(runtime, "run_alone", run)
    monkeypatch.setattr(runtime, "run", lambda batches: map(run, batches))
    return encoder, shapes


@pytest.mark.parametrize(("words", "tokens"), [(3, 5), (7, 9), (29, 31), (30, 32), (35, 32)])
def test_short_texts_are_not_padded_further(run_shapes, words, tokens):
    """Neither few texts nor those of batches."""
    encoder, shapes = run_shapes
    encoder.encode_queries(["a " * words] * 4)
    encoder.encode_queries(["a " * words] * 5)
    assert {length for _, length in shapes} == {tokens}
    assert sum(count for count, _ in shapes) == 9


@pytest.mark.parametrize(("words", "batches"), [(13, 2), (14, 1)])
def test_few_texts_of_very_different_lengths_are_apart(run_shapes, words, batches):
    """Those with less than half the tokens of the longest, 32 with special ones."""
    encoder, shapes = run_shapes
    encoder.encode_queries(["a " * 30, "a " * words])
    assert len(shapes) == batches
