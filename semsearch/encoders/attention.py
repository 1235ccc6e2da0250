"""Attention, written out as OpenVINO computes it fastest on a CPU.

A converted model has one operation for the attention of a layer (Vaswani et al. 2017, section
3.2.1). OpenVINO takes it apart by itself, but then puts the keys into columns, number by number;
as rows, as queries and values are, they are moved by whole heads. And what torch's masks become
takes some sixty operations, each of which costs time whenever texts of another length come.
"""

from __future__ import annotations

from typing import Any

import numpy

#: The input that tells tokens from padding, by 1 and 0; of shape (texts, tokens).
MASK = "attention_mask"


def write_out_attention(model: Any) -> None:
    """Change a model into one that computes the same, with attention as products and a softmax.

    Attention to earlier tokens alone, which is not BERT's, stays as it is.

    Args:
        model: of OpenVINO, with an input `MASK`; each head attends to all tokens.
    """
    from openvino import opset13 as op
    from openvino.utils import replace_node

    padding = _padding(model)
    for node in model.get_ordered_ops():
        if node.get_type_name() != "ScaledDotProductAttention" or node.get_attributes()["causal"]:
            continue
        queries, keys, values, *others = node.input_values()
        width = queries.get_partial_shape()[3].get_length()
        scale = others[1] if len(others) > 1 else op.constant(numpy.float32(width**-0.5))
        scores = op.multiply(op.matmul(queries, _in_rows(keys), False, True), scale)
        if others:
            is_for_all_heads = others[0].get_partial_shape()[1] == 1
            scores = op.add(scores, padding if is_for_all_heads else others[0])
        replace_node(node, op.matmul(op.softmax(scores, 3), values, False, False))
    model.validate_nodes_and_infer_types()


def _padding(model: Any) -> Any:
    """What is added to scores: nothing for tokens, next to minus infinity for padding."""
    from openvino import opset13 as op

    mask = next(one for one in model.inputs if MASK in one.get_names())
    nothing, lowest = numpy.float32(0), numpy.finfo(numpy.float32).min
    added = op.select(op.convert(mask, "boolean"), op.constant(nothing), op.constant(lowest))
    return op.unsqueeze(added, op.constant([1, 2]))


def _in_rows(keys: Any) -> Any:
    """Keys of shape (texts, heads, tokens, width), moved once where they are moved twice."""
    from openvino import opset13 as op

    last = keys.get_node()
    first = last.input_value(0).get_node()
    if any(node.get_type_name() != "Transpose" for node in (first, last)):
        return keys
    orders = [numpy.array(node.input_value(1).get_node().data) for node in (first, last)]
    return op.transpose(first.input_value(0), op.constant(orders[0][orders[1]]))
