"""Conversion of models of Sentence-Transformers for OpenVINO, with all their modules.

Attention is written out as OpenVINO computes it fastest on a CPU. A converted model has one
operation per attention layer (Vaswani et al. 2017, section 3.2.1), which OpenVINO decomposes, but
then transposes the keys element by element; stored in rows, like queries and values, they are
copied by whole heads. Torch's masks become about sixty operations, each of which costs time for
every new text length; those that only hide padding are replaced.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from semsearch.encoders.model_folder import ModelFolder, NotConvertibleError
from semsearch.encoders.openvino.runtime import (
    Converted,
    import_converter,
    import_openvino,
    openvino_core,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_loading import quiet_transformers, why_not_by_ids
from semsearch.encoders.torch_models import TorchEncoder, TorchReranker, cutting_tokenizer
from semsearch.errors import first_line

#: The minimum cosine between the vectors of the two runtimes, both in fp32.
PARITY = 0.9999
#: The relative and absolute tolerance of scores between the runtimes.
TOLERANCE = 1e-3

_SENTENCE = "Rivers carry sand and gravel from the mountains to the plain. "
#: Texts of very different lengths, to test padding and masks.
PROBE = (
    "A cat.",
    "x",
    "The committee postponed its decision until the auditors had seen every invoice of the year.",
    "Is it raining? No: 3.5 mm fell yesterday.",
    _SENTENCE * 2,
    _SENTENCE * 5,
    _SENTENCE * 12,
    _SENTENCE * 40,
)


def convert_encoder(folder: ModelFolder, draft: Path) -> None:
    """Write a bi-encoder, with pooling and normalisation, into a folder.

    Raises:
        NotConvertibleError: OpenVINO cannot run it, or its vectors would change.
    """
    encoder = TorchEncoder(folder, device="cpu", attention="eager")
    converted = _save(encoder, draft)
    vectors = converted.text_model(Precision.FP32).encode(PROBE)
    expected = encoder.model.encode(list(PROBE), prompt="", normalize_embeddings=True)
    cosines = (vectors * expected).sum(axis=1)
    if not cosines.min() >= PARITY:
        raise NotConvertibleError(f"its vectors would change (cosine {cosines.min():.4f})")


def convert_reranker(folder: ModelFolder, draft: Path) -> None:
    """Write a cross-encoder, with its activation, into a folder.

    Raises:
        NotConvertibleError: OpenVINO cannot run it, or its scores would change.
    """
    reranker = TorchReranker(folder, device="cpu", attention="eager")
    converted = _save(reranker, draft)
    pairs = [(left, right) for left in PROBE[:2] for right in PROBE]
    scores = converted.text_model(Precision.FP32).run(pairs)[:, 0]
    expected = reranker.model.predict(pairs, show_progress_bar=False)
    if not numpy.allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE):
        worst = float(numpy.abs(scores - expected).max())
        raise NotConvertibleError(f"its scores would change (by {worst:.4f})")


def _save(original: TorchEncoder | TorchReranker, draft: Path) -> Converted:
    """Write a model, its tokenizer and its properties into a folder."""
    model = original.model
    if reason := why_not_by_ids(model):
        raise NotConvertibleError(reason)
    text_model = original.queries if isinstance(original, TorchEncoder) else original.pairs
    facts, tokenizer = text_model.facts, cutting_tokenizer(model)
    texts = list(PROBE[:2])
    features = model.tokenizer(
        texts,
        texts if isinstance(original, TorchReranker) else None,
        padding=True,
        truncation=True,
        max_length=model.max_seq_length,
        return_tensors="pt",
    )
    example = {name: features[name] for name in facts.inputs}
    try:
        network = _traced(model, example, original.result_of)
        write_out_attention(network, int(model.max_seq_length))
    except (MemoryError, OSError):
        raise
    except Exception as error:  # torch and OpenVINO raise many kinds
        reason = f"OpenVINO cannot convert it ({first_line(error)})"
        raise NotConvertibleError(reason) from error
    import_openvino().save_model(network, str(draft / "model.xml"), compress_to_fp16=False)
    tokenizer.save(str(draft / "tokenizer.json"))
    (draft / "facts.json").write_text(json.dumps(facts._asdict()), "utf-8")
    return Converted(draft, facts)


def _traced(model: Any, example: dict[str, Any], result: Callable[[dict[str, Any]], Any]) -> Any:
    """Convert all modules of a model, for any number of texts of any length."""
    import torch

    class Whole(torch.nn.Module):
        """From token ids to the result."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            features = dict(zip(example, inputs, strict=True))
            for module in self.model:
                features = module(features)
            rows: torch.Tensor = result(features)
            return rows

    with torch.no_grad(), quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's, about shapes; the parity check covers them
        converted = import_converter().convert_model(
            Whole().eval(), example_input=tuple(example.values())
        )
    for port, name in zip(converted.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    converted.reshape({port: [-1, -1] for port in converted.inputs})
    return converted


#: The input with 1 for tokens and 0 for padding, shape (texts, tokens).
MASK = "attention_mask"
#: Windows of attention are looked for in texts of up to this number of tokens.
LONGEST_MASK = 8192
#: The operations that split rows into heads.
SPLITTING = ("Reshape", "Transpose")


def write_out_attention(model: Any, longest: int) -> None:
    """Rewrite the attention of a model as matrix products and a softmax.

    Args:
        model: an OpenVINO model with an input `MASK`.
        longest: the maximum number of tokens of a text.
    """
    from openvino import opset13 as op
    from openvino.utils import replace_node

    padding = _padding(model)
    masks: dict[Any, bool] = {}  # whether each mask hides padding only
    for node in model.get_ordered_ops():
        if node.get_type_name() != "ScaledDotProductAttention" or node.get_attributes()["causal"]:
            continue
        queries, keys, values, *others = node.input_values()
        width = queries.get_partial_shape()[3].get_length()
        scale = others[1] if len(others) > 1 else op.constant(numpy.float32(width**-0.5))
        _scale_early(node.input(0), scale)
        scores = op.matmul(node.input_value(0), _in_rows(keys), False, True)
        if others:
            name = others[0].get_node().get_friendly_name(), others[0].get_index()
            if name not in masks:
                masks[name] = _hides_only_padding(model, others[0], min(longest, LONGEST_MASK))
            scores = op.add(scores, padding if masks[name] else others[0])
        replace_node(node, op.matmul(op.softmax(scores, 3), values, False, False))
    model.validate_nodes_and_infer_types()


def _hides_only_padding(model: Any, mask: Any, longest: int) -> bool:
    """Whether a mask is the same for all heads and tokens: not causal, no window, no bias."""
    from openvino import opset13 as op

    if mask.get_partial_shape()[1] != 1:
        return False
    watching = import_openvino().Model([op.result(mask)], model.get_parameters()).clone()
    run = openvino_core().compile_model(watching, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})

    def added(tokens: Any) -> Any:
        inputs = {name: tokens for port in run.inputs for name in port.get_names()}
        return numpy.array(run(inputs)[0])[:, 0]

    tokens = numpy.ones((2, min(longest, 8)), numpy.int64)
    tokens[1, 3:] = 0
    few = added(tokens)
    hidden = (tokens == 0)[:, None]
    return bool(
        numpy.array_equal(few < -1e30, numpy.broadcast_to(hidden, few.shape))
        and not few[few >= -1e30].any()
        and not added(numpy.ones((1, longest), numpy.int64)).any()
    )


def _padding(model: Any) -> Any:
    """The values to add to scores: 0 for tokens, the lowest number for padding."""
    from openvino import opset13 as op

    mask = next(one for one in model.inputs if MASK in one.get_names())
    nothing, lowest = numpy.float32(0), numpy.finfo(numpy.float32).min
    added = op.select(op.convert(mask, "boolean"), op.constant(nothing), op.constant(lowest))
    return op.unsqueeze(added, op.constant([1, 2]))


def _scale_early(queries: Any, scale: Any) -> None:
    """Multiply queries before they are split into heads: OpenVINO folds that into weights.

    Args:
        queries: the input of an operation.
        scale: a number.
    """
    from openvino import opset13 as op

    source = queries.get_source_output()
    while source.get_node().get_type_name() in SPLITTING and len(source.get_target_inputs()) == 1:
        queries = source.get_node().input(0)
        source = queries.get_source_output()
    queries.replace_source_output(op.multiply(source, scale).output(0))


def _in_rows(keys: Any) -> Any:
    """Keys of shape (texts, heads, tokens, width), with two transpositions combined into one."""
    from openvino import opset13 as op

    last = keys.get_node()
    first = last.input_value(0).get_node()
    if any(node.get_type_name() != "Transpose" for node in (first, last)):
        return keys
    orders = [numpy.array(node.input_value(1).get_node().data) for node in (first, last)]
    return op.transpose(first.input_value(0), op.constant(orders[0][orders[1]]))
