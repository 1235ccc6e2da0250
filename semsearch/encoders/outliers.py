"""Outliers among activations, taken out of the way of int8.

An activation in int8 has 256 values for all its channels and texts. In a BERT, a few channels are
ten times as large as the rest, and what quantisation loses is lost there. Two ways out, for the
two kinds of matrix products:

- before products that keep or raise the number of channels, each channel is divided by a factor
  that the weights make up for (SmoothQuant, Xiao et al. 2023, section 4);
- contractions, the second halves of feed-forward blocks, multiply their largest channels apart, in
  floating point (LLM.int8(), Dettmers et al. 2022, section 3). Smoothing fails there: what the
  activation function has left of most channels is all but zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from semsearch.encoders.openvino_library import import_openvino, openvino_core

__all__ = ["RECIPE", "Recipe", "channel_ranges", "take_outliers_apart"]

#: One number a channel.
Channels = NDArray[numpy.float32]

#: Channels that are always zero are taken for this large.
LEAST = 1e-5


class Recipe(NamedTuple):
    """What is done about outliers.

    Args:
        smoothing: SmoothQuant's alpha: how much of the activations' range the weights take over,
            from 0 to 1; None leaves it where it is.
        apart: the part of a contraction's input channels that is multiplied in floating point;
            with 1, all contractions stay as they are.
    """

    smoothing: float | None = 0.65
    apart: float = 1 / 48


RECIPE = Recipe()


class _Products(NamedTuple):
    """Matrix products of one activation with weights of shape (channels out, channels in)."""

    activation: Any
    nodes: list[Any]
    weights: list[NDArray[numpy.float32]]

    @property
    def are_contractions(self) -> bool:
        return all(len(weights) < weights.shape[1] for weights in self.weights)


def channel_ranges(model: Any, inputs: Iterable[dict[str, Any]]) -> list[Channels]:
    """The largest absolute value in each channel of each activation that is multiplied by weights.

    Args:
        model: of OpenVINO.
        inputs: what it reads, without padding.
    """
    openvino = import_openvino()
    from openvino import opset13 as op

    watched = model.clone()
    ranges = []
    for products in _products(watched):
        axes = list(range(products.activation.get_partial_shape().rank.get_length() - 1))
        ranges.append(op.result(op.reduce_max(op.absolute(products.activation), axes)))
    watching = openvino.Model(ranges, watched.get_parameters())
    run = openvino_core().compile_model(watching, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    found = ([numpy.array(value) for value in run(features).values()] for features in inputs)
    return [numpy.maximum.reduce(values) for values in zip(*found, strict=True)]


def take_outliers_apart(
    model: Any, ranges: Sequence[Channels], recipe: Recipe = RECIPE
) -> list[str]:
    """Change a model into one that computes the same and is quantised with less loss.

    Args:
        model: of OpenVINO.
        ranges: of its activations, from `channel_ranges`.
        recipe: what is done.

    Returns:
        The names of the nodes that have to stay in floating point.
    """
    floats: list[str] = []
    for products, largest in zip(_products(model), ranges, strict=True):
        if not products.are_contractions:
            if recipe.smoothing is not None:
                _smooth(products, largest.clip(LEAST), recipe.smoothing)
        elif recipe.apart == 1:
            floats += [node.get_friendly_name() for node in products.nodes]
        elif outliers := int(recipe.apart * len(largest)):
            floats += _multiply_apart(products, numpy.sort(numpy.argsort(-largest)[:outliers]))
    model.validate_nodes_and_infer_types()
    return floats


def _smooth(products: _Products, largest: Channels, alpha: float) -> None:
    """Divide the channels of an activation by factors, and multiply the weights by them."""
    from openvino import opset13 as op

    heaviest = numpy.abs(numpy.concatenate(products.weights)).max(axis=0).clip(LEAST)
    factors = (largest**alpha / heaviest ** (1 - alpha)).astype(numpy.float32)
    smoothed = op.multiply(products.activation, 1 / factors)
    for node, weights in zip(products.nodes, products.weights, strict=True):
        _replace(node, _product(smoothed, weights * factors, node.get_friendly_name()))


def _multiply_apart(products: _Products, outliers: NDArray[numpy.int64]) -> list[str]:
    """Multiply some channels of an activation on their own; the names of these products."""
    from openvino import opset13 as op

    rest = numpy.ones(products.weights[0].shape[1], numpy.float32)
    rest[outliers] = 0
    without = op.multiply(products.activation, rest)
    alone = op.gather(products.activation, outliers, numpy.int64(-1))
    names = []
    for node, weights in zip(products.nodes, products.weights, strict=True):
        name = node.get_friendly_name()
        names.append(f"{name}/outliers")
        apart = _product(alone, weights[:, outliers], names[-1])
        _replace(node, op.add(_product(without, weights * rest, name), apart))
    return names


def _products(model: Any) -> list[_Products]:
    """The products of a model with weights, grouped by what they multiply, in the model's order."""
    groups: dict[tuple[str, int], _Products] = {}
    for node in model.get_ordered_ops():
        if node.get_type_name() != "MatMul":
            continue
        activation, weights = node.input_value(0), node.input_value(1).get_node()
        is_linear = node.get_attributes() == {"transpose_a": False, "transpose_b": True}
        if is_linear and weights.get_type_name() == "Constant" and len(weights.shape) == 2:
            key = activation.get_node().get_friendly_name(), activation.get_index()
            group = groups.setdefault(key, _Products(activation, [], []))
            group.nodes.append(node)
            group.weights.append(numpy.array(weights.data, numpy.float32))
    return list(groups.values())


def _product(activation: Any, weights: NDArray[numpy.float32], name: str) -> Any:
    from openvino import opset13 as op

    node = op.matmul(activation, op.constant(weights), transpose_a=False, transpose_b=True)
    node.set_friendly_name(name)
    return node


def _replace(node: Any, other: Any) -> None:
    """Let what reads a node read another one."""
    for reader in list(node.output(0).get_target_inputs()):
        reader.replace_source_output(other.output(0))
