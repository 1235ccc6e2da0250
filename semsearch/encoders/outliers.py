"""Treatment of outliers among activations before quantisation to int8.

An activation in int8 has 256 values for all its channels and texts. In a BERT, a few channels are
ten times as large as the rest and cause most of the loss. There are two remedies, for the two kinds
of matrix products:

- before products that keep or increase the number of channels, each channel is divided by a factor
  by which its weights are multiplied (SmoothQuant, Xiao et al. 2023, section 4);
- the inner units of a feed-forward block with the largest values become a small separate block in
  floating point (after LLM.int8(), Dettmers et al. 2022, section 3). Smoothing fails before
  contractions, the second halves of such blocks, because after the activation function most units
  are almost zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.openvino.runtime import import_openvino, openvino_core

#: One number per channel.
Channels = NDArray[numpy.float32]

#: Inner units of a feed-forward block, as channels of its inner activation.
Units = NDArray[numpy.int64]

#: The assumed size of channels that are always zero.
LEAST = 1e-5

#: Elementwise operations: biases and activation functions.
ELEMENTWISE = {
    *("Add", "Subtract", "Multiply", "Divide", "Power"),
    *("Gelu", "Relu", "Erf", "Tanh", "Sigmoid", "Swish", "HSwish", "Mish", "Elu"),
}


class Recipe(NamedTuple):
    """The treatment of outliers.

    Args:
        smoothing: SmoothQuant's alpha: how much of the activations' range is moved to the weights,
            from 0 to 1; None disables smoothing.
        apart: the share of a block's inner units that stays in floating point; with 1, all
            contractions do. Contractions with another kind of input always do.
    """

    smoothing: float | None = 0.65
    apart: float = 1 / 24


RECIPE = Recipe()


class _Products(NamedTuple):
    """Matrix products of one activation with weights of shape (channels out, channels in)."""

    activation: Any
    nodes: list[Any]
    weights: list[NDArray[numpy.float32]]

    @property
    def name(self) -> str:
        """The name of the activation."""
        return f"{self.activation.get_node().get_friendly_name()}:{self.activation.get_index()}"

    @property
    def are_contractions(self) -> bool:
        return all(len(weights) < weights.shape[1] for weights in self.weights)


def channel_ranges(model: Any, inputs: Iterable[dict[str, Any]]) -> dict[str, Channels]:
    """The largest absolute value in each channel of each activation multiplied by weights.

    Args:
        model: an OpenVINO model.
        inputs: inputs of the model, without padding.

    Returns:
        The ranges by the activation's name.
    """
    openvino = import_openvino()
    from openvino import opset13 as op

    watched = model.clone()
    all_products = _products(watched)
    ranges = []
    for products in all_products:
        axes = list(range(products.activation.get_partial_shape().rank.get_length() - 1))
        ranges.append(op.result(op.reduce_max(op.absolute(products.activation), axes)))
    watching = openvino.Model(ranges, watched.get_parameters())
    run = openvino_core().compile_model(watching, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = ([numpy.array(value) for value in run(features).values()] for features in inputs)
    largest = [numpy.maximum.reduce(values) for values in zip(*found, strict=True)]
    return {one.name: values for one, values in zip(all_products, largest, strict=True)}


def split_outlier_units(
    model: Any, ranges: Mapping[str, Channels], recipe: Recipe = RECIPE
) -> list[str]:
    """Rewrite a model into an equivalent one that loses less by quantisation.

    Args:
        model: an OpenVINO model.
        ranges: the ranges of its activations, from `channel_ranges`.
        recipe: the treatment of outliers.

    Returns:
        The names of the products that must stay in floating point.
    """
    floats: list[str] = []
    for products in _products(model):
        count = int(recipe.apart * len(ranges[products.name]))
        if products.are_contractions and count:
            floats += _split(products, numpy.argsort(-ranges[products.name]), count)
    for products in _products(model, without=floats):
        if recipe.smoothing is not None and not products.are_contractions:
            _smooth(products, ranges[products.name].clip(LEAST), recipe.smoothing)
    model.validate_nodes_and_infer_types()
    return floats


def _smooth(products: _Products, largest: Channels, alpha: float) -> None:
    """Divide the channels of an activation by factors, and multiply the weights by them."""
    from openvino import opset13 as op
    from openvino.utils import replace_node

    heaviest = numpy.abs(numpy.concatenate(products.weights)).max(axis=0).clip(LEAST)
    factors = (largest**alpha / heaviest ** (1 - alpha)).astype(numpy.float32)
    smoothed = op.multiply(products.activation, 1 / factors)
    for node, weights in zip(products.nodes, products.weights, strict=True):
        replace_node(node, _product(smoothed, weights * factors, node.get_friendly_name()))


def _split(contraction: _Products, units: Units, count: int) -> list[str]:
    """Split a feed-forward block into two.

    Args:
        contraction: the second half of the block.
        units: its inner units, those with the largest values first.
        count: how many of these form a separate block.

    Returns:
        The names of the products that must stay in floating point.
    """
    from openvino import opset13 as op
    from openvino.utils import replace_node

    names = [node.get_friendly_name() for node in contraction.nodes]
    if count == len(units):
        return names
    apart, rest = numpy.sort(units[:count]), numpy.sort(units[count:])
    built: dict[str, Any] = {}
    try:
        outliers = _of_units(contraction.activation, apart, "/outliers", built)
        others = _of_units(contraction.activation, rest, "", {})
    except _OtherKindError:
        return names
    for node, name, weights in zip(contraction.nodes, names, contraction.weights, strict=True):
        few = _product(outliers, weights[:, apart], f"{name}/outliers")
        replace_node(node, op.add(_product(others, weights[:, rest], name), few))
    linear = [name for name, node in built.items() if node.get_type_name() == "MatMul"]
    return [f"{name}/outliers" for name in (*linear, *names)]


class _OtherKindError(Exception):
    """An activation is not an elementwise function of a linear layer."""


def _of_units(activation: Any, units: Units, suffix: str, built: dict[str, Any]) -> Any:
    """Some channels of an activation, recomputed from the linear layer on.

    Args:
        activation: the output of a node.
        units: the channels.
        suffix: appended to the names of new products.
        built: nodes built so far, by the names of the original nodes.

    Raises:
        _OtherKindError: the activation is computed in another way.
    """
    from openvino import opset13 as op
    from openvino.utils.node_factory import NodeFactory

    node = activation.get_node()
    name, kind = node.get_friendly_name(), node.get_type_name()
    if name not in built:
        if is_linear(node):
            built[name] = _product(node.input_value(0), _weights(node)[units], name + suffix)
        elif kind == "Constant":
            values = numpy.array(node.data)
            built[name] = op.constant(values[..., units] if values.size > 1 else values)
        elif kind in ELEMENTWISE:
            inputs = [_of_units(one, units, suffix, built) for one in node.input_values()]
            outputs = [one.output(0) for one in inputs]
            built[name] = NodeFactory("opset13").create(kind, outputs, node.get_attributes())
        else:
            raise _OtherKindError
    return built[name]


def _products(model: Any, without: Sequence[str] = ()) -> list[_Products]:
    """The products of a model with weights, grouped by activation, in the model's order."""
    groups: dict[str, _Products] = {}
    for node in model.get_ordered_ops():
        if is_linear(node) and node.get_friendly_name() not in without:
            products = _Products(node.input_value(0), [], [])
            group = groups.setdefault(products.name, products)
            group.nodes.append(node)
            group.weights.append(_weights(node))
    return list(groups.values())


def is_linear(node: Any) -> bool:
    """Whether a node is a product with weights of shape (channels out, channels in)."""
    if node.get_type_name() != "MatMul":
        return False
    weights = node.input_value(1).get_node()
    as_torch = {"transpose_a": False, "transpose_b": True}
    return (
        node.get_attributes() == as_torch
        and weights.get_type_name() == "Constant"
        and len(weights.shape) == 2
    )


def _weights(node: Any) -> NDArray[numpy.float32]:
    return numpy.array(node.input_value(1).get_node().data, numpy.float32)


def _product(activation: Any, weights: NDArray[numpy.float32], name: str) -> Any:
    from openvino import opset13 as op

    node = op.matmul(activation, op.constant(weights), transpose_a=False, transpose_b=True)
    node.set_friendly_name(name)
    return node
