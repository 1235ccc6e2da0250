"""After any failed conversion, the model runs on torch, and a warning of one line says why."""

from __future__ import annotations

import errno

import numpy
import pytest
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.torch_models import TorchEncoder, TorchReranker

TEXTS = ["a b c", "d"]
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")

#: The step that fails, its error, and the reason in the warning.
FAILURES = [
    ("_traced", RuntimeError("Check 'x' failed at src/y.cpp:1:\nmore"), "Check 'x' failed at "),
    ("_traced", NotImplementedError(), "failed (NotImplementedError)"),
    ("_traced", MemoryError(), "failed (MemoryError)"),
    ("import_openvino", ImportError("libopenvino.so"), "failed (libopenvino.so)"),
    ("_save", NO_SPACE, "cannot be written (No space left on device)"),
    ("why_not_bert_like", None, "no conversion today"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, without converted models."""
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def classifier(plain_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    config = BertConfig.from_pretrained(plain_bert, num_labels=1)
    BertForSequenceClassification(config).eval().save_pretrained(folder)
    BertTokenizerFast.from_pretrained(plain_bert).save_pretrained(folder)
    return str(folder)


@pytest.fixture
def failing(monkeypatch):
    """Makes a step of the conversion fail."""

    def fail(name, error):
        def step(*arguments, **options):
            if error is None:
                return "no conversion today"
            raise error

        for module in ("conversion", "openvino_models"):
            monkeypatch.setattr(f"semsearch.encoders.{module}.{name}", step, raising=False)

    return fail


def warning(caplog, spec):
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"model '{spec}' runs on torch: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize(("name", "error", "reason"), FAILURES)
def test_an_encoder_runs_on_torch(failing, plain_bert, caplog, cache, name, error, reason):
    failing(name, error)
    encoder = load_encoder(str(plain_bert))
    assert isinstance(encoder, TorchEncoder)
    assert reason in warning(caplog, plain_bert)
    expected = load_encoder(str(plain_bert), device="cpu").encode_documents(TEXTS)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-6)
    assert not list(cache.glob("encoder-*.*/*"))  # no partial conversion is left


@pytest.mark.parametrize(("name", "error", "reason"), FAILURES[-2:])
def test_a_reranker_runs_on_torch(failing, classifier, caplog, name, error, reason):
    failing(name, error)
    reranker = load_reranker(classifier)
    assert isinstance(reranker, TorchReranker)
    assert reason in warning(caplog, f"cross-encoder:{classifier}")
    expected = load_reranker(classifier, "cpu").score("a", ["b", "c d"])
    numpy.testing.assert_allclose(reranker.score("a", ["b", "c d"]), expected, atol=1e-6)


def test_a_cache_that_cannot_be_written(plain_bert, classifier, caplog, cache):
    cache.write_text("a file where the folder should be")
    assert isinstance(load_encoder(str(plain_bert)), TorchEncoder)
    assert "set SEMSEARCH_CACHE to another folder" in warning(caplog, plain_bert)
    caplog.clear()
    assert isinstance(load_reranker(classifier), TorchReranker)
    assert "set SEMSEARCH_CACHE to another folder" in warning(caplog, f"cross-encoder:{classifier}")


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_interrupts_propagate(failing, plain_bert, classifier, error):
    failing("_traced", error())
    with pytest.raises(error):
        load_encoder(str(plain_bert))
    with pytest.raises(error):
        load_reranker(classifier)
