"""Runtimes are chosen by name; a module can add another one."""

from __future__ import annotations

import shutil
import sys
from types import ModuleType

import numpy
import pytest

from semsearch import encoders as loading
from semsearch.encoders import load_encoder, load_reranker
from semsearch.encoders.model_folder import NotConvertibleError
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.torch_models import TorchEncoder, TorchRuntime, text_model
from semsearch.errors import ArgumentError, EncoderError

TEXTS = ["a b c", "d", "a a a a e f", "b " * 50, "", "f e d c b a"]


@pytest.fixture
def other(monkeypatch):
    """A third-party runtime, which is tried first."""

    class Counting(TorchRuntime):
        """Counts the batches that it runs."""

        batches = 0

        def run(self, batches):
            for features in batches:
                Counting.batches += 1
                yield self.run_alone(features)

    class CountingEncoder(TorchEncoder):
        @property
        def documents(self):
            model = text_model(self.model, self.facts, self.vectors_of)
            model._runtime = Counting(self.model, self.vectors_of)
            return model

    def load(folder, device, precision):
        assert device is None
        if "refused" in folder.spec:
            raise NotConvertibleError("the other runtime knows no such layer")
        return CountingEncoder(folder, "cpu", precision=precision)

    module = ModuleType("other_runtime")
    module.load_encoder = load
    module.load_reranker = load
    monkeypatch.setitem(sys.modules, "other_runtime", module)
    monkeypatch.setattr(loading, "RUNTIMES", {"other": "other_runtime", **loading.RUNTIMES})
    monkeypatch.setattr(loading, "has_gpu", lambda: False)
    return Counting


def test_runtimes_are_chosen_by_name(plain_bert):
    expected = load_encoder(str(plain_bert), "cpu", "fp32").encode_documents(TEXTS)
    for name, kind in (("openvino", OpenVINOEncoder), ("torch", TorchEncoder)):
        encoder = load_encoder(str(plain_bert), precision="fp32", runtime=name)
        assert isinstance(encoder, kind)
        numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)


def test_a_module_can_add_a_runtime(other, plain_bert):
    encoder = load_encoder(str(plain_bert), precision="fp32")
    expected = load_encoder(str(plain_bert), "cpu", "fp32").encode_documents(TEXTS)
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-6)
    assert other.batches > 0


def test_unsupported_models_run_on_the_next_runtime(other, plain_bert, tmp_path, caplog):
    del other
    shutil.copytree(plain_bert, tmp_path / "refused")
    encoder = load_encoder(str(tmp_path / "refused"), precision="fp32")
    assert isinstance(encoder, OpenVINOEncoder)
    assert "the other runtime knows no such layer" in caplog.text
    with pytest.raises(EncoderError, match="knows no such layer"):
        load_encoder(str(tmp_path / "refused"), precision="fp32", runtime="other")


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
