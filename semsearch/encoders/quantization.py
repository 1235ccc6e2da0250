"""Converted models in int8, with the measured agreement of their nearest texts with fp32.

Post-training static quantisation (Jacob et al. 2018) of linear layers, with SmoothQuant (Xiao et
al. 2023) and copies of the largest hidden units (Zhao et al. 2019). The ranges of a model's
activations are its recipe: that of the bundled model comes with the package, that of another one
is computed from the first passages that it encodes.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cache_folder, cached_entry
from semsearch.encoders.openvino.runtime import (
    COMPILED,
    Converted,
    import_openvino,
    openvino_core,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import Features, Ids, TextModel

logger = logging.getLogger(__name__)

#: Incremented with every change of the written files.
VERSION = 12

#: SmoothQuant's alpha: how much of the activations' range is moved to the weights, from 0 to 1. In
#: a BERT, a few channels are ten times as large as the rest and cause most of the loss.
ALPHA = 0.8

#: How many copies of hidden units are added to a layer, those of the largest ones, which share the
#: unit's value: of 1,536 units of MiniLM's layers, one is four times as large as the next.
COPIES = 8

#: The depth of rankings, and the share of the nearest passages of fp32 that int8 must find.
NEAREST, AGREEMENT = 10, 0.95

#: The number of passages that ranges are computed from, and of those compared with fp32.
CALIBRATED, COMPARED = 300, 200

#: The recipe of the bundled model, made by `scripts/bench/quantization --write-recipe`.
RECIPE_FILE = "minilm-int8.npz"

Values = NDArray[numpy.float32]


class Recipe(NamedTuple):
    """The ranges of the inputs of a model's linear layers, in the order of the layers.

    Layers with the same input are counted once.
    """

    largest: list[Values]  #: the largest absolute values, each of shape (channels,)
    #: The mean lowest and highest values once smoothed; NaN leaves the layers in floats.
    bounds: list[tuple[float, float]]


def quantized_model(
    converted: Converted, fingerprint: str, passages: Sequence[str] = ()
) -> tuple[Converted, float] | None:
    """The int8 form of a model and its agreement with fp32, from the cache or computed now.

    Args:
        converted: the converted model.
        fingerprint: of the original model.
        passages: the first ones of a corpus.

    Returns:
        None if there is no recipe, and too few passages to compute one.
    """
    version = import_openvino().get_version().partition("-")[0]
    name = f"int8-{VERSION}-{version}-{fingerprint[:32]}"
    if not (cache_folder() / name).is_dir():
        if shipped_recipe(fingerprint) is None and len(passages) < COMPARED:
            return None
        cached_entry(name, lambda draft: _quantize(converted, fingerprint, passages, draft))
    entry = cache_folder() / name
    found = float((entry / "agreement").read_text("utf-8"))
    return converted._replace(folder=entry), found


@cache
def overflows() -> bool:
    """Whether sums of int8 products overflow on this processor.

    They do on x86 without VNNI, which adds two products in 16 bits. Where Linux names VNNI, they
    need not be tried, which would take longer than a query.
    """
    with suppress(OSError):
        if "vnni" in Path("/proc/cpuinfo").read_text("utf-8"):
            return False
    return sums_overflow()


def sums_overflow() -> bool:
    """Whether sums of the largest int8 products overflow on this processor, tried."""
    openvino = import_openvino()
    from openvino import opset13 as op

    width, activation, weight = 64, 255, 127
    lowest, highest = numpy.float32(0), numpy.float32(activation)
    inputs = op.parameter([-1, width], numpy.float32)
    rounded = op.fake_quantize(inputs, lowest, highest, lowest, highest, activation + 1)
    weights = op.constant(numpy.full((width, width), weight, numpy.int8))
    scale = op.constant(numpy.ones((width, 1), numpy.float32))
    scaled = op.multiply(op.convert(weights, "f32"), scale)
    product = op.matmul(rounded, scaled, False, True)
    model = openvino.Model([op.result(product)], [inputs])
    compiled = openvino_core().compile_model(model, "CPU")
    sums = compiled(numpy.full((4, width), activation, numpy.float32))[0]
    return bool(sums.max() < 0.9 * width * activation * weight)


def _quantize(converted: Converted, fingerprint: str, passages: Sequence[str], draft: Path) -> None:
    """Write the quantised model and its agreement with fp32 into a folder."""
    shipped = shipped_recipe(fingerprint)
    if shipped is not None:
        recipe, found = shipped
        quantize(converted, recipe, draft)
    else:
        exact = converted.text_model(Precision.FP32)
        prompt = exact.facts.prompts.get("document", "")
        used = [prompt + text for text in islice(passages, CALIBRATED)]
        quantize(converted, computed_recipe(converted, map(exact.features, used)), draft)
        found = neighbour_agreement(
            exact, converted._replace(folder=draft).text_model(Precision.FP32), used[:COMPARED]
        )
        shutil.rmtree(draft / COMPILED, ignore_errors=True)  # OpenVINO knows it by its path
    (draft / "agreement").write_text(repr(found), "utf-8")


def neighbour_agreement(exact: TextModel, model: TextModel, texts: Sequence[str]) -> float:
    """The share of each text's nearest other texts in one model that another one finds.

    Args:
        exact: the first model.
        model: the other model.
        texts: the texts, more than `NEAREST`.
    """

    def nearest_others(encoder: TextModel) -> NDArray[numpy.int64]:
        matrix = encoder.encode(texts)
        scores = matrix @ matrix.T
        numpy.fill_diagonal(scores, -numpy.inf)
        return numpy.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]

    return agreement(nearest_others(exact), nearest_others(model))


def nearest(
    queries: TextModel, documents: TextModel, asked: Sequence[str], texts: Sequence[str]
) -> NDArray[numpy.int64]:
    """The positions of each query's nearest texts, the nearest first, shape (queries, NEAREST).

    Args:
        queries: the model for queries.
        documents: the model for documents.
        asked: the queries.
        texts: the documents.
    """
    prompts = queries.facts.prompts
    matrix = documents.encode(texts, prompts.get("document", ""))
    scores = queries.encode(asked, prompts.get("query", "")) @ matrix.T
    return numpy.argsort(-scores, axis=1, kind="stable")[:, :NEAREST]


def agreement(one: NDArray[numpy.int64], other: NDArray[numpy.int64]) -> float:
    """The mean share of the nearest texts that two rankings have in common."""
    shared = [len(set(a) & set(b)) for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    return float(numpy.mean(shared)) / NEAREST


def computed_recipe(converted: Converted, inputs: Iterable[Features]) -> Recipe:
    """The recipe of a model, from its inputs for some texts, one text each."""
    from openvino import opset13 as op

    model = openvino_core().read_model(str(converted.folder / "model.xml"))
    layers = _linear_layers(model)
    over_tokens = op.constant([0, 1])
    extremes = (op.reduce_min, op.reduce_max)
    ranges = [reduce(source, over_tokens) for source, _ in layers for reduce in extremes]
    watching = import_openvino().Model([op.result(one) for one in ranges], model.get_parameters())
    run = openvino_core().compile_model(watching, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    texts = [[numpy.array(value) for value in run(features).values()] for features in inputs]
    columns = [numpy.stack(column) for column in zip(*texts, strict=True)]  # of (texts, channels)
    recipe = Recipe([], [])
    for (source, products), low, high in zip(layers, columns[::2], columns[1::2], strict=True):
        recipe.largest.append(numpy.maximum(abs(low).max(axis=0), abs(high).max(axis=0)))
        copies = _copies(source, recipe.largest[-1])
        scale = copies * _smoothing(recipe.largest[-1] / copies, products)
        lowest, highest = (low / scale).min(axis=1).mean(), (high / scale).max(axis=1).mean()
        recipe.bounds.append((min(float(lowest), 0.0), max(float(highest), 0.0)))
    return recipe


def quantize(converted: Converted, recipe: Recipe, draft: Path) -> None:
    """Write a model in int8, and its tokenizer, into a folder.

    Args:
        converted: the converted model.
        recipe: its recipe.
        draft: the folder.
    """
    from openvino import opset13 as op

    model = openvino_core().read_model(str(converted.folder / "model.xml"))
    layers = []
    for (source, products), largest in zip(_linear_layers(model), recipe.largest, strict=True):
        copies = _copies(source, largest)
        smoothing = _smoothing(largest / copies, products)
        units = numpy.repeat(numpy.arange(len(copies)), copies)
        _copy_units(source, units)
        layers.append((source, products, units, copies[units], smoothing[units]))
    for (source, products, units, copies, smoothing), (low, high) in zip(
        layers, recipe.bounds, strict=True
    ):
        if numpy.isnan(low):
            for product in products:
                weights = op.constant((_weights(product)[:, units] / copies).astype(numpy.float32))
                product.input(1).replace_source_output(weights.output(0))
            continue
        step = max(high - low, 1e-6) / 255
        zero = round(-low / step)  # 0 keeps its value exactly
        bounds = [numpy.float32(step * level) for level in (-zero, 255 - zero)]
        smoothed = op.multiply(
            source, op.constant((1 / (copies * smoothing)).astype(numpy.float32).reshape(1, 1, -1))
        )
        rounded = op.fake_quantize(smoothed, *bounds, *bounds, 256)
        for product in products:
            weights = _weights(product)[:, units] * smoothing
            scale = abs(weights).max(axis=1, keepdims=True).clip(1e-12) / 127
            levels = op.constant(numpy.round(weights / scale).astype(numpy.int8))
            restored = op.multiply(op.convert(levels, "f32"), op.constant(scale))
            product.input(0).replace_source_output(rounded.output(0))
            product.input(1).replace_source_output(restored.output(0))
    model.validate_nodes_and_infer_types()
    import_openvino().save_model(model, str(draft / "model.xml"), compress_to_fp16=False)
    shutil.copy(converted.folder / "tokenizer.json", draft)


def _linear_layers(model: Any) -> list[tuple[Any, list[Any]]]:
    """The inputs of linear layers, each with the matrix products that read it."""
    layers: dict[tuple[str, int], tuple[Any, list[Any]]] = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul" or not node.get_attributes()["transpose_b"]:
            continue
        source, weights = node.input_value(0), node.input_value(1).get_node()
        if weights.get_type_name() != "Constant" or source.get_partial_shape().rank != 3:
            continue  # of two activations, or after pooling
        key = source.get_node().get_friendly_name(), source.get_index()
        layers.setdefault(key, (source, []))[1].append(node)
    return list(layers.values())


def _hidden_layer(source: Any) -> tuple[Any, Any, Any] | None:
    """The product, bias and activation of the linear layer whose hidden units an input is."""
    activation = source.get_node()
    if activation.get_type_name() not in ("Gelu", "Relu"):
        return None
    bias = activation.input_value(0).get_node()
    if bias.get_type_name() != "Add":
        return None
    product = bias.input_value(0).get_node()
    kinds = [product.get_type_name(), bias.input_value(1).get_node().get_type_name()]
    alone = all(len(node.output(0).get_target_inputs()) == 1 for node in (product, bias))
    return (product, bias, activation) if kinds == ["MatMul", "Constant"] and alone else None


def _copies(source: Any, largest: Values) -> Ids:
    """The number of copies of each unit of an input: 1, or more for large hidden units."""
    copies = numpy.ones(len(largest), numpy.int64)
    if _hidden_layer(source) is not None:
        for _ in range(COPIES):
            copies[(largest / copies).argmax()] += 1
    return copies


def _copy_units(source: Any, units: Ids) -> None:
    """Make the layer before an input compute these units, in this order."""
    from openvino import opset13 as op

    if len(units) == source.get_partial_shape()[2] or (hidden := _hidden_layer(source)) is None:
        return
    product, bias, _ = hidden
    weights = op.constant(_weights(product)[units])
    product.input(1).replace_source_output(weights.output(0))
    added = op.constant(bias.input_value(1).get_node().data[..., units].copy())
    bias.input(1).replace_source_output(added.output(0))
    for node in hidden:
        node.validate_and_infer_types()


def _weights(product: Any) -> Values:
    """The weights of a linear layer, shape (outputs, channels)."""
    weights: Values = numpy.array(product.input_value(1).get_node().data, numpy.float32)
    return weights


def _smoothing(largest: NDArray[numpy.floating], products: Sequence[Any]) -> Values:
    """What to divide each input channel by, shape (channels,)."""
    weights = numpy.max([abs(_weights(product)).max(axis=0) for product in products], axis=0)
    smoothing = largest.clip(1e-5) ** ALPHA / weights.clip(1e-5) ** (1 - ALPHA)
    return numpy.asarray(smoothing, numpy.float32)


def shipped_recipe(fingerprint: str) -> tuple[Recipe, float] | None:
    """The recipe that comes with the package and its agreement, if it is of this model."""
    with (files("semsearch.encoders") / RECIPE_FILE).open("rb") as stream:
        stored = numpy.load(stream)
        if str(stored["fingerprint"]) != fingerprint:
            return None
        ends = numpy.cumsum(stored["channels"])[:-1]
        largest = numpy.split(stored["largest"].astype(numpy.float32), ends)
        bounds = [(float(low), float(high)) for low, high in stored["bounds"]]
        return Recipe(largest, bounds), float(stored["agreement"])


def save_recipe(recipe: Recipe, fingerprint: str, found: float, file: Path) -> None:
    """Write a recipe with its model's fingerprint and its agreement with fp32."""
    numpy.savez_compressed(
        file,
        fingerprint=fingerprint,
        agreement=found,
        channels=[len(values) for values in recipe.largest],
        largest=numpy.concatenate(recipe.largest).astype(numpy.float32),
        bounds=recipe.bounds,
    )
