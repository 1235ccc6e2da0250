"""Machines with a GPU. Here, torch's CPU device stands in for it."""

from __future__ import annotations

import numpy
import pytest

from semsearch import encoders as loading
from semsearch.encoders import load_encoder
from semsearch.encoders.openvino.models import FIRST_DOCUMENTS, GPUEncoder, OpenVINOEncoder
from semsearch.encoders.specs import Precision, described_precision
from semsearch.encoders.torch_models import TorchEncoder, ready_attention

TEXTS = ["a b c", "d", "a a a a e f", "b " * 50, "", "f e d c b a"]


@pytest.fixture(autouse=True)
def gpu(monkeypatch):
    monkeypatch.setattr(loading, "has_gpu", lambda: True)


@pytest.fixture
def on_torch(monkeypatch):
    """The numbers of texts that torch encodes, one for each call."""
    counts = []

    def encode(encoder, texts, encode=TorchEncoder.encode_documents):
        counts.append(len(texts))
        return encode(encoder, texts)

    for name in ("encode_documents", "encode_queries"):
        monkeypatch.setattr(TorchEncoder, name, encode)
    return counts


def test_documents_are_encoded_on_the_gpu_after_the_first_and_queries_are_not(plain_bert, on_torch):
    encoder = load_encoder(str(plain_bert), precision="fp32")
    assert isinstance(encoder, GPUEncoder)
    expected = load_encoder(str(plain_bert), "cpu", "fp32").encode_documents(TEXTS)
    on_torch.clear()
    encoder.encode_documents(["a"] * (FIRST_DOCUMENTS - len(TEXTS)))
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)
    assert on_torch == []
    numpy.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-5)
    numpy.testing.assert_allclose(encoder.encode_documents(iter(TEXTS)), expected, atol=1e-5)
    assert on_torch == [len(TEXTS)] * 2
    alone = OpenVINOEncoder(encoder.folder, Precision.FP32).encode_queries(TEXTS)
    numpy.testing.assert_array_equal(encoder.encode_queries(TEXTS), alone)
    encoder.encode_queries(["a"] * (FIRST_DOCUMENTS + 1))
    assert on_torch == [len(TEXTS)] * 2


def test_another_machine_can_load_it_again(plain_bert):
    """fp16 is described so that processors, which lack it, take their best precision."""
    for precision, on_gpu in (("float", "fp16"), ("fp32", "fp32")):
        described = load_encoder(str(plain_bert), precision=precision).description()
        assert described["precision"] == on_gpu
        assert described_precision(described) is Precision(precision)
    # An index with int8, made elsewhere, can be searched.
    assert type(load_encoder(str(plain_bert), precision="int8")) is OpenVINOEncoder


@pytest.mark.parametrize(
    ("version", "expected"),
    [("cuda: str = '13.0'\n", True), ("cuda = None\n", False), (None, False)],
)
def test_a_build_of_torch_for_cuda_is_recognised(tmp_path, monkeypatch, version, expected):
    """A driver alone is not enough: PyPI's torch for Windows, for one, runs on CPUs only."""
    monkeypatch.syspath_prepend(tmp_path)
    if version is not None:
        (tmp_path / "torchlike").mkdir()
        (tmp_path / "torchlike" / "__init__.py").write_text("raise AssertionError('imported')")
        (tmp_path / "torchlike" / "version.py").write_text(version)
    assert loading._is_for_cuda("torchlike") is expected


def test_attention_of_cudnn_is_excluded_on_a_gpu():
    """It compiles a kernel for each new shape of a batch: a seventh of the speed on an H200."""
    import torch

    with ready_attention("cuda"):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
        assert torch.backends.cuda.mem_efficient_sdp_enabled()
    with ready_attention("cpu"):
        assert torch.backends.cuda.cudnn_sdp_enabled()
