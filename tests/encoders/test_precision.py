"""The choice of a precision, and the quality gate of int8."""

from __future__ import annotations

import csv
import json
from importlib.resources import files
from itertools import product
from pathlib import Path

import numpy
import pytest

from semsearch import Document, Index
from semsearch.encoders import load_encoder, quantization
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino import runtime
from semsearch.encoders.openvino.runtime import Converted, float_precision, import_openvino
from semsearch.encoders.quantization import (
    agreement,
    computed_recipe,
    nearest,
    neighbour_agreement,
    quantize,
    save_recipe,
    shipped_recipe,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import ModelFacts
from semsearch.errors import EncoderError

LETTERS = "abcdef"
PASSAGES = [" ".join(parts) for parts in product(LETTERS, LETTERS, LETTERS)]


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


def test_int8_is_not_used_where_products_overflow(plain_bert, monkeypatch, caplog):
    monkeypatch.setattr(quantization, "overflows", lambda: True)
    for precision, warnings in (("int8", 1), ("auto", 0)):
        caplog.clear()
        encoder = load_encoder(str(plain_bert), precision=precision)
        encoder.encode_documents(PASSAGES)
        assert encoder.description()["precision"] in ("fp32", "bf16")
        assert len(caplog.records) == warnings


def test_products_overflow_on_x86_without_vnni():
    processor = Path("/proc/cpuinfo").read_text()
    if "GenuineIntel" in processor or "AuthenticAMD" in processor:
        assert quantization.sums_overflow() == ("vnni" not in processor)


class TestInt8:
    """A tiny model with random weights, on a processor without bf16 that is suitable."""

    @pytest.fixture(autouse=True)
    def cache(self, tmp_path, monkeypatch):
        monkeypatch.setattr(quantization, "overflows", lambda: False)
        monkeypatch.setattr(runtime, "_has_bf16", lambda: False)
        monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path))
        return tmp_path

    @pytest.mark.parametrize("precision", ["auto", "int8"])
    def test_the_first_passages_decide(self, plain_bert, cache, monkeypatch, precision):
        monkeypatch.setattr(quantization, "AGREEMENT", 0)
        encoder = load_encoder(str(plain_bert), precision=precision)
        plain = load_encoder(str(plain_bert), precision="fp32")
        few = PASSAGES[: quantization.COMPARED - 1]
        numpy.testing.assert_array_equal(encoder.encode_documents(few), plain.encode_documents(few))
        assert encoder.description()["precision"] == "fp32"
        vectors = encoder.encode_documents(PASSAGES)
        description = encoder.description()
        json.dumps(description)
        assert description["precision"] == "int8"
        assert 0.3 < description["agreement"] <= 1
        for found in (vectors, encoder.encode_queries(PASSAGES)):
            cosines = (found * plain.encode_documents(PASSAGES)).sum(axis=1)
            assert 0.9 < cosines.min() < 1 - 1e-7
        (file,) = cache.glob("int8-*/model.xml")
        assert "FakeQuantize" in file.read_text("utf-8")
        again = load_encoder(str(plain_bert), precision=precision)
        numpy.testing.assert_array_equal(
            again.encode_queries(few), encoder.encode_queries(few), strict=True
        )
        for other in ("float", "fp32"):
            assert load_encoder(str(plain_bert), precision=other).precision == "fp32"

    @pytest.mark.parametrize(("found", "passes"), [(0.95, True), (0.949, False), ("nan", False)])
    def test_the_gate(self, plain_bert, monkeypatch, caplog, found, passes):
        monkeypatch.setattr(quantization, "agreement", lambda *_: float(found))
        encoder = load_encoder(str(plain_bert), precision="int8")
        encoder.encode_documents(PASSAGES)
        assert encoder.description()["precision"] == ("int8" if passes else "fp32")
        assert len(caplog.records) == 1
        assert load_encoder(str(plain_bert)).precision == encoder.precision

    def test_an_index_records_what_its_first_passages_decided(self, plain_bert, tmp_path):
        place = tmp_path / "index"
        with Index.create(place, str(plain_bert)) as index:
            index.add([Document(str(n), text) for n, text in enumerate(PASSAGES)])
        encoder = load_encoder(str(plain_bert))
        with Index.open(place) as index:
            description = index.info().spaces[0].description
            assert description == encoder.description()
            scores = [hit.score for hit in index.search("a b", k=3)]
            matrix = encoder.encode_documents(PASSAGES) @ encoder.encode_queries(["a b"])[0]
            numpy.testing.assert_allclose(scores, numpy.sort(matrix)[:-4:-1], atol=1e-3)


def test_levels_and_ranges_of_one_layer(tmp_path):
    """By hand: two channels, of which one is ten times as large; alpha 0.8."""
    openvino = import_openvino()
    from openvino import opset13 as op

    weights = numpy.array([[1, 1], [0.5, -1]], numpy.float32)
    inputs = op.parameter([-1, -1, 2], numpy.float32, name="x")
    inputs.output(0).set_names({"x"})
    output = op.matmul(inputs, op.constant(weights), False, True)
    model = openvino.Model([op.result(output)], [inputs])
    openvino.save_model(model, str(tmp_path / "model.xml"), compress_to_fp16=False)
    (tmp_path / "tokenizer.json").write_text("{}")
    converted = Converted(tmp_path, ModelFacts(2, 10, ["x"], 0, {}, []))
    text = numpy.array([[[10, 1], [-5, 0.5]]], numpy.float32)
    recipe = computed_recipe(converted, [{"x": text}])
    numpy.testing.assert_allclose(recipe.largest, [[10, 1]])
    # Smoothing divides by 10 ** 0.8 and 1; 10 / 6.31 = 1.585 and -5 / 6.31 = -0.792 remain.
    numpy.testing.assert_allclose(recipe.bounds, [(-0.792, 1.585)], atol=1e-3)
    draft = tmp_path / "draft"
    draft.mkdir()
    quantize(converted, recipe, draft)
    # Where sums overflow, with the same levels in floats.
    options = {"LP_TRANSFORMS_MODE": "OFF"} if quantization.overflows() else {}
    run = openvino.Core().compile_model(str(draft / "model.xml"), "CPU", options)
    numpy.testing.assert_allclose(run(text)[0], text @ weights.T, atol=0.1)


def test_the_shipped_recipe_is_that_of_the_bundled_model(tmp_path):
    fingerprint = find_model("minilm").fingerprint
    recipe, found = shipped_recipe(fingerprint)
    assert found >= quantization.AGREEMENT
    assert [len(values) for values in recipe.largest[:4]] == [384, 384, 384, 1536]
    save_recipe(recipe, fingerprint, found, tmp_path / "again.npz")
    numpy.testing.assert_array_equal(
        numpy.load(tmp_path / "again.npz")["largest"], numpy.concatenate(recipe.largest)
    )
    assert shipped_recipe("another") is None


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


def test_minilm_in_int8(tmp_path, monkeypatch):
    """At once, for queries and documents; the ten nearest of 200 notes are those of fp32."""
    if quantization.overflows():
        pytest.skip("this processor does not support int8")
    monkeypatch.setattr(runtime, "_has_bf16", lambda: False)
    encoder, exact = load_encoder("minilm"), load_encoder("minilm", precision="fp32")
    assert encoder.description()["precision"] == "int8"
    with (files("semsearch.corpus") / "sample" / "notes.csv").open(encoding="utf-8") as stream:
        notes = [row["text"] for row in csv.DictReader(stream)][:200]
    assert neighbour_agreement(exact.documents, encoder.documents, notes) > 0.95
