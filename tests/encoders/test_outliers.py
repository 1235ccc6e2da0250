"""Treatment of outliers: outputs stay the same, and the ranges for int8 become smaller."""

from __future__ import annotations

import numpy
import openvino
import pytest
from openvino import opset13 as op

from semsearch.encoders.outliers import RECIPE, Recipe, channel_ranges, split_outlier_units

WIDTH, INNER = 12, 96


def linear(activation, rows, name, seed):
    """A product with weights, like a converted linear layer of torch."""
    width = activation.get_output_partial_shape(0)[-1].get_length()
    weights = numpy.random.default_rng(seed).normal(size=(rows, width)).astype(numpy.float32)
    node = op.matmul(activation, op.constant(weights), False, True)
    node.set_friendly_name(name)
    return node


def with_bias(activation, seed):
    width = activation.get_output_partial_shape(0)[-1].get_length()
    bias = numpy.random.default_rng(seed).normal(size=(1, 1, width)).astype(numpy.float32)
    return op.add(activation, op.constant(bias))


def gelu(x):
    return op.gelu(x, "erf")


def sigmoid_gelu(x):
    """GELU's approximation by a sigmoid, x * sigmoid(1.702 x)."""
    return op.multiply(x, op.sigmoid(op.multiply(x, op.constant(numpy.float32(1.702)))))


@pytest.fixture(params=[gelu, sigmoid_gelu])
def model(request):
    """Two products of one input, a simplified attention, and a feed-forward block."""
    text = op.parameter([-1, -1, WIDTH], numpy.float32)
    text.output(0).set_names({"x"})
    query, key = linear(text, WIDTH, "query", 1), linear(text, WIDTH, "key", 2)
    inner = request.param(with_bias(linear(op.multiply(query, key), INNER, "up", 3), 5))
    return openvino.Model([op.result(linear(inner, WIDTH, "down", 4))], [text], "block")


@pytest.fixture
def inputs():
    """Texts of several lengths with a large channel 5."""
    texts = [numpy.random.default_rng(n).normal(size=(1, n + 1, WIDTH)) for n in range(4)]
    for text in texts:
        text[..., 5] *= 30
    return [{"x": text.astype(numpy.float32)} for text in texts]


def run(model, features):
    return openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(
        features
    )[0]


def weights_of(model):
    """The weights of all products, by name."""
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() == "MatMul"]
    return {node.get_friendly_name(): node.input_value(1).get_node().data for node in nodes}


def test_ranges_are_the_largest_values_of_each_channel(model, inputs):
    text, mixed, inner = channel_ranges(model, inputs).values()
    largest = [numpy.abs(features["x"]).max(axis=(0, 1)) for features in inputs]
    numpy.testing.assert_allclose(text, numpy.max(largest, axis=0), rtol=1e-6)
    assert mixed.shape == (WIDTH,)
    assert inner.shape == (INNER,)
    assert len(model.get_results()) == 1  # the model itself is left alone


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        Recipe(smoothing=0.5, apart=0),
        Recipe(smoothing=None, apart=0.25),
        Recipe(smoothing=1, apart=1),
    ],
)
def test_outputs_are_unchanged(model, inputs, recipe):
    expected = [run(model, features) for features in inputs]
    split_outlier_units(model, channel_ranges(model, inputs), recipe)
    for features, rows in zip(inputs, expected, strict=True):
        largest = numpy.abs(rows).max()
        numpy.testing.assert_allclose(run(model, features), rows, atol=1e-5 * largest)


@pytest.mark.parametrize(
    ("recipe", "floats"),
    [
        (RECIPE, ["up/outliers", "down/outliers"]),
        (Recipe(apart=0), []),
        (Recipe(apart=1 / (INNER + 1)), []),  # less than one channel
        (Recipe(apart=1), ["down"]),
    ],
)
def test_products_in_floating_point(model, inputs, recipe, floats):
    assert split_outlier_units(model, channel_ranges(model, inputs), recipe) == floats
    names = {node.get_friendly_name() for node in model.get_ordered_ops()}
    assert {"query", "key", "up", "down", *floats} <= names


def test_the_largest_units_become_a_separate_block(model, inputs):
    *_, inner = channel_ranges(model, inputs).values()
    before = weights_of(model)
    split_outlier_units(model, channel_ranges(model, inputs), Recipe(smoothing=None, apart=1 / 48))
    after = weights_of(model)
    largest, others = (numpy.sort(some) for some in numpy.split(numpy.argsort(-inner), [96 // 48]))
    for suffix, units in (("/outliers", largest), ("", others)):
        numpy.testing.assert_array_equal(after[f"up{suffix}"], before["up"][units])
        numpy.testing.assert_array_equal(after[f"down{suffix}"], before["down"][:, units])


def test_a_contraction_of_another_kind_stays_in_floating_point(inputs):
    """The channels of its input are not rows of weights: here, a softmax mixes them."""
    text = op.parameter([-1, -1, WIDTH], numpy.float32)
    text.output(0).set_names({"x"})
    mixed = op.softmax(linear(text, INNER, "up", 1), 2)
    model = openvino.Model([op.result(linear(mixed, WIDTH, "down", 2))], [text], "mixed")
    expected = run(model, inputs[2])
    assert split_outlier_units(model, channel_ranges(model, inputs)) == ["down"]
    numpy.testing.assert_allclose(run(model, inputs[2]), expected, rtol=1e-4, atol=1e-6)


def test_smoothing_evens_out_the_channels(model, inputs):
    """With alpha = 0.5, the ranges of activations and weights become equal (section 4)."""
    text, _, _ = channel_ranges(model, inputs).values()
    assert text.argmax() == 5
    split_outlier_units(model, channel_ranges(model, inputs), Recipe(smoothing=0.5, apart=0))
    smoothed, _, _ = channel_ranges(model, inputs).values()
    both = numpy.concatenate([weights_of(model)[name] for name in ("query", "key")])
    numpy.testing.assert_allclose(smoothed, numpy.abs(both).max(axis=0), rtol=1e-5)
