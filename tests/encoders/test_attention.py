"""Attention rewritten as matrix products equals OpenVINO's own operation."""

from __future__ import annotations

from collections import Counter

import numpy
import openvino
import pytest
from openvino import opset13 as op

from semsearch.encoders.openvino.conversion import MASK, write_out_attention

HEADS, WIDTH = 3, 8
LENGTHS = [5, 2, 1]


def heads(tokens, order):
    """Tokens of shape (texts, tokens, numbers), split into heads."""
    split = op.reshape(tokens, op.constant([0, 0, HEADS, WIDTH]), special_zero=True)
    return op.transpose(split, op.constant(order))


def floats_of(mask):
    """Torch's additive mask: 0 for tokens, the lowest number for padding."""
    lowest = numpy.finfo(numpy.float32).min
    added = op.select(op.convert(mask, "boolean"), numpy.float32(0), lowest)
    return op.unsqueeze(added, op.constant([1, 2]))


def model(added=None, keys_in_columns=True, scale=None, causal=False):
    """A model of one self-attention layer."""
    ids = op.parameter([-1, -1], numpy.int64, name="input_ids")
    mask = op.parameter([-1, -1], numpy.int64, name=MASK)
    for one in (ids, mask):
        one.output(0).set_names({one.get_friendly_name()})
    table = numpy.random.default_rng(3).normal(size=(20, HEADS * WIDTH)).astype(numpy.float32)
    tokens = op.gather(op.constant(table), ids, op.constant(0))
    keys = heads(tokens, [0, 2, 1, 3])
    if keys_in_columns:  # as torch's eager attention is converted
        keys = op.transpose(heads(tokens, [0, 2, 3, 1]), op.constant([0, 1, 3, 2]))
    values = op.multiply(heads(tokens, [0, 2, 1, 3]), numpy.float32(2))
    inputs = [heads(tokens, [0, 2, 1, 3]), keys, values]
    inputs += [added(mask)] if added else []
    inputs += [op.constant(numpy.float32(scale))] if scale else []
    attended = op.scaled_dot_product_attention(*inputs, causal=causal)
    return openvino.Model([op.result(attended)], [ids, mask], "attention")


def output(one):
    """The output of a model for three padded texts."""
    ids = numpy.arange(3 * LENGTHS[0]).reshape(3, -1) % 20
    mask = numpy.arange(LENGTHS[0]) < numpy.array(LENGTHS)[:, None]
    run = openvino.Core().compile_model(one, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return numpy.array(run({"input_ids": ids, MASK: mask.astype(numpy.int64)})[0])


def kinds(one):
    return Counter(node.get_type_name() for node in one.get_ordered_ops())


@pytest.mark.parametrize(
    "options",
    [
        {"added": floats_of},
        {"added": floats_of, "scale": 0.3},
        {"added": floats_of, "keys_in_columns": False},
        {},
    ],
)
def test_outputs_are_unchanged(options):
    """Masks of decoders, windows and position biases: those of the models in another file."""
    one = model(**options)
    expected = output(one)
    transposed = kinds(one)["Transpose"]
    write_out_attention(one, LENGTHS[0])
    found = kinds(one)
    assert found["ScaledDotProductAttention"] == 0
    assert found["MatMul"] == 2
    if options.get("keys_in_columns", True):  # keys are transposed once
        assert (transposed, found["Transpose"]) == (4, 3)
    numpy.testing.assert_allclose(output(one), expected, atol=1e-6)


def test_causal_attention_is_not_rewritten():
    one = model(causal=True)
    expected = output(one)
    write_out_attention(one, LENGTHS[0])
    assert kinds(one)["ScaledDotProductAttention"] == 1
    numpy.testing.assert_array_equal(output(one), expected)
