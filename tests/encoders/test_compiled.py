"""Stored compiled models are reused if possible, and otherwise compiled again."""

from __future__ import annotations

import re

import numpy
import openvino
import pytest
from openvino import opset13 as op

from semsearch.encoders import load_encoder
from semsearch.encoders import openvino_runtime as compiled
from semsearch.encoders.openvino_runtime import compiled_model, keep_compiled, openvino_core

OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
ROW = numpy.array([[1, 2, 3, 4]], numpy.float32)


@pytest.fixture
def folder(tmp_path):
    """A model of one matrix product, 4 numbers wide."""
    weights = numpy.arange(16, dtype=numpy.float32).reshape(4, 4)
    row = op.parameter([-1, 4], numpy.float32)
    product = op.matmul(row, op.constant(weights), transpose_a=False, transpose_b=True)
    folder = tmp_path / "draft"
    folder.mkdir()
    openvino.save_model(
        openvino.Model([op.result(product)], [row], "product"),
        str(folder / "model.xml"),
        compress_to_fp16=False,
    )
    return folder


@pytest.fixture
def used(monkeypatch):
    """How models were obtained, in order: "read" from a file or "compiled" by OpenVINO."""
    ways = []

    class Core:
        def import_model(self, *arguments):
            model = openvino_core().import_model(*arguments)
            ways.append("read")
            return model

        def compile_model(self, *arguments):
            ways.append("compiled")
            return openvino_core().compile_model(*arguments)

        def get_property(self, *arguments):
            return openvino_core().get_property(*arguments)

    monkeypatch.setattr(compiled, "openvino_core", Core)
    return ways


def output(folder, options=OPTIONS):
    return compiled_model(folder, options)([ROW])[0].tolist()


# by hand: 0·1 + 1·2 + 2·3 + 3·4, and 4 · (1 + 2 + 3 + 4) more in each row
PRODUCT = [[20, 60, 100, 140]]


def test_a_moved_folder_is_still_read(folder, used):
    keep_compiled(folder, OPTIONS)
    entry = folder.rename(folder.with_name("entry"))
    used.clear()
    assert output(entry) == PRODUCT
    assert used == ["read"]


def test_weights_are_not_stored_twice(folder):
    keep_compiled(folder, OPTIONS)
    weights = folder / "model.bin"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert output(folder) == [[0, 0, 0, 0]]


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: re.sub(b"isa=...", b"isa=XYZ", kept, count=1),
        lambda kept: re.sub(b"ov=20", b"ov=19", kept, count=1),
        lambda kept: kept[: len(kept) // 2],
    ],
    ids=["another processor", "another version", "cut off"],
)
def test_an_unusable_file_is_ignored(folder, used, change):
    keep_compiled(folder, OPTIONS)
    (kept,) = folder.glob("*.blob")
    changed = change(kept.read_bytes())
    assert changed != kept.read_bytes()
    kept.write_bytes(changed)
    used.clear()
    assert output(folder) == PRODUCT
    assert used == ["compiled"]


def test_a_converted_model_is_not_compiled_again(plain_bert, used, tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))  # other tests hide bf16 support
    load_encoder(str(plain_bert))  # converts
    used.clear()
    encoder = load_encoder(str(plain_bert), precision="fp32")
    encoder.encode_queries(["a b c"])
    encoder.encode_documents(["a", "b c"] * 5)
    assert used == ["read", "read"]
