"""Outliers taken apart: the model computes the same, and int8 has less to hold."""

from __future__ import annotations

import numpy
import openvino
import pytest
from openvino import opset13 as op

from semsearch.encoders.outliers import RECIPE, Recipe, channel_ranges, take_outliers_apart

WIDTH, INNER = 12, 96


def linear(activation, rows, name, seed):
    """A product with weights, as torch's linear layers are converted."""
    width = activation.get_output_partial_shape(0)[-1].get_length()
    weights = numpy.random.default_rng(seed).normal(size=(rows, width)).astype(numpy.float32)
    node = op.matmul(activation, op.constant(weights), False, True)
    node.set_friendly_name(name)
    return node


@pytest.fixture
def model():
    """Two products of one input, an attention of sorts, and a feed-forward block."""
    text = op.parameter([-1, -1, WIDTH], numpy.float32)
    text.output(0).set_names({"x"})
    query, key = linear(text, WIDTH, "query", 1), linear(text, WIDTH, "key", 2)
    mixed = op.multiply(query, key)
    inner = op.relu(linear(mixed, INNER, "up", 3))
    return openvino.Model([op.result(linear(inner, WIDTH, "down", 4))], [text], "block")


@pytest.fixture
def inputs():
    """Texts of several lengths, whose channel 5 is large."""
    texts = [numpy.random.default_rng(n).normal(size=(1, n + 1, WIDTH)) for n in range(4)]
    for text in texts:
        text[..., 5] *= 30
    return [{"x": text.astype(numpy.float32)} for text in texts]


def run(model, features):
    return openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(
        features
    )[0]


def constants_of(model, kind):
    """The constants that nodes of a kind read, by their shape."""
    nodes = [node for node in model.get_ordered_ops() if node.get_type_name() == kind]
    sources = [node.input_value(1).get_node() for node in nodes]
    return [node.data for node in sources if node.get_type_name() == "Constant"]


def test_ranges_are_the_largest_values_of_each_channel(model, inputs):
    text, mixed, inner = channel_ranges(model, inputs)
    largest = [numpy.abs(features["x"]).max(axis=(0, 1)) for features in inputs]
    numpy.testing.assert_allclose(text, numpy.max(largest, axis=0), rtol=1e-6)
    assert mixed.shape == (WIDTH,)
    assert inner.shape == (INNER,)
    assert len(model.get_results()) == 1  # the model itself is left alone


@pytest.mark.parametrize(
    "recipe",
    [
        RECIPE,
        Recipe(smoothing=None, apart=0),
        Recipe(smoothing=0.5, apart=0),
        Recipe(smoothing=None, apart=0.25),
        Recipe(smoothing=1, apart=1),
    ],
)
def test_the_model_computes_the_same(model, inputs, recipe):
    expected = [run(model, features) for features in inputs]
    take_outliers_apart(model, channel_ranges(model, inputs), recipe)
    for features, rows in zip(inputs, expected, strict=True):
        largest = numpy.abs(rows).max()
        numpy.testing.assert_allclose(run(model, features), rows, atol=1e-5 * largest)


@pytest.mark.parametrize(
    ("recipe", "floats"),
    [
        (RECIPE, ["down/outliers"]),
        (Recipe(apart=0), []),
        (Recipe(apart=1 / (INNER + 1)), []),  # less than one channel
        (Recipe(apart=1), ["down"]),
    ],
)
def test_what_stays_in_floating_point(model, inputs, recipe, floats):
    assert take_outliers_apart(model, channel_ranges(model, inputs), recipe) == floats
    names = {node.get_friendly_name() for node in model.get_ordered_ops()}
    assert {"query", "key", "up", "down", *floats} <= names


def test_the_largest_channels_are_multiplied_apart(model, inputs):
    ranges = channel_ranges(model, inputs)
    take_outliers_apart(model, ranges, Recipe(smoothing=None, apart=1 / 48))
    (apart,) = constants_of(model, "Gather")
    assert sorted(apart) == sorted(numpy.argsort(ranges[2])[-2:])  # 96 / 48
    # What is left to int8 is zero there.
    inner = [scale for scale in constants_of(model, "Multiply") if scale.size == INNER]
    assert set(numpy.flatnonzero(inner[0] == 0)) == set(apart)


def test_smoothing_evens_out_the_channels(model, inputs):
    """With alpha = 0.5, the ranges of activations and weights become equal (section 4)."""
    text, _, _ = channel_ranges(model, inputs)
    assert text.argmax() == 5
    take_outliers_apart(model, channel_ranges(model, inputs), Recipe(smoothing=0.5, apart=0))
    smoothed, _, _ = channel_ranges(model, inputs)
    both = numpy.concatenate(
        [w for w in constants_of(model, "MatMul") if w.shape == (WIDTH, WIDTH)]
    )
    numpy.testing.assert_allclose(smoothed, numpy.abs(both).max(axis=0), rtol=1e-5)
