"""Conversion of Sentence-Transformers models for OpenVINO.

Attention is written out as OpenVINO computes it fastest on a CPU. A converted model has one
operation per attention layer (Vaswani et al. 2017, section 3.2.1), which OpenVINO decomposes, but
then transposes the keys element by element; stored in rows, like queries and values, they are
copied by whole heads. Torch's masks become about sixty operations, each of which costs time for
every new text length.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.encoders.model_folder import ModelFolder, NotConvertibleError
from semsearch.encoders.openvino_runtime import (
    Converted,
    OpenVINORuntime,
    float_precision,
    import_converter,
    import_openvino,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import ModelFacts
from semsearch.encoders.torch_loading import quiet_transformers
from semsearch.encoders.torch_models import TorchEncoder, TorchReranker, cutting_tokenizer

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

#: The minimum cosine between the vectors of the two runtimes, both in fp32.
PARITY = 0.9999
#: The relative and absolute tolerance of scores between the runtimes.
TOLERANCE = 1e-3

#: Texts of very different lengths, to test padding and masks.
PROBE = (
    "A cat.",
    "The committee postponed its decision until the auditors had seen every invoice of the year.",
    "x",
    "Rivers carry sand and gravel from the mountains to the plain. " * 12,
)


def convert_encoder(folder: ModelFolder, draft: Path) -> Converted:
    """Write a bi-encoder, with pooling and normalisation, into a folder.

    Raises:
        NotConvertibleError: its vectors would change.
    """
    encoder = TorchEncoder(folder, device="cpu", attention="eager")
    model = encoder.model
    if encoder.facts.prompts and not all(
        getattr(module, "include_prompt", True) for module in model
    ):
        raise NotConvertibleError("it excludes prompts from pooling")
    converted = _save(model, encoder.facts, encoder.vectors_of, draft)
    vectors = converted.text_model(Precision.FP32).encode(PROBE)
    cosines = (vectors * encoder.encode_plainly(PROBE)).sum(axis=1)
    if not cosines.min() >= PARITY:
        raise NotConvertibleError(f"its vectors would change (cosine {cosines.min():.4f})")
    return converted


def convert_reranker(folder: ModelFolder, draft: Path) -> Converted:
    """Write a cross-encoder, with its activation, into a folder.

    Raises:
        NotConvertibleError: its scores would change.
    """
    reranker = TorchReranker(folder, device="cpu", attention="eager")
    converted = _save(reranker.model, reranker.facts, reranker.scores_of, draft, pairs=True)
    pairs = list(product(PROBE, PROBE))
    scores = converted.text_model(Precision.FP32).run(pairs)[:, 0]
    expected = reranker.score_plainly(pairs)
    if not numpy.allclose(scores, expected, rtol=TOLERANCE, atol=TOLERANCE):
        worst = float(numpy.abs(scores - expected).max())
        raise NotConvertibleError(f"its scores would change (by {worst:.4f})")
    return converted


def keep_compiled(converted: Converted) -> None:
    """Store compiled models in the cache, so that later uses need not compile them."""
    for precision in {Precision.FP32, float_precision(Precision.AUTO)}:
        OpenVINORuntime(converted.folder, precision).keep_compiled()


def _save(
    model: SentenceTransformer | CrossEncoder,
    facts: ModelFacts,
    result: Callable[[dict[str, Any]], Any],
    draft: Path,
    *,
    pairs: bool = False,
) -> Converted:
    """Write a model, its tokenizer and its properties into a folder.

    Args:
        model: the loaded model.
        facts: its properties.
        result: computes the result from the output of its modules.
        draft: the folder.
        pairs: whether it reads pairs of texts.
    """
    texts = list(PROBE[:2])
    features = model.tokenizer(
        texts,
        texts if pairs else None,
        padding=True,
        truncation=True,
        max_length=model.max_seq_length,
        return_tensors="pt",
    )
    example = {name: features[name] for name in facts.inputs}
    network = _traced(model, example, result)
    import_openvino().save_model(network, str(draft / "model.xml"), compress_to_fp16=False)
    cutting_tokenizer(model).save(str(draft / "tokenizer.json"))
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
            found: torch.Tensor = result(features)
            return found

    with torch.no_grad(), quiet_transformers(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer's, about shapes; the parity check covers them
        converted = import_converter().convert_model(
            Whole().eval(), example_input=tuple(example.values())
        )
    for port, name in zip(converted.inputs, example, strict=True):
        port.get_tensor().set_names({name})
    converted.reshape({port: [-1, -1] for port in converted.inputs})
    write_out_attention(converted)
    return converted


#: The input with 1 for tokens and 0 for padding, shape (texts, tokens).
MASK = "attention_mask"


def write_out_attention(model: Any) -> None:
    """Rewrite the attention of a model as matrix products and a softmax.

    Causal attention, which BERT does not have, is not changed.

    Args:
        model: an OpenVINO model with an input `MASK`.
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
    """The values to add to scores: 0 for tokens, the lowest number for padding."""
    from openvino import opset13 as op

    mask = next(one for one in model.inputs if MASK in one.get_names())
    nothing, lowest = numpy.float32(0), numpy.finfo(numpy.float32).min
    added = op.select(op.convert(mask, "boolean"), op.constant(nothing), op.constant(lowest))
    return op.unsqueeze(added, op.constant([1, 2]))


def _in_rows(keys: Any) -> Any:
    """Keys of shape (texts, heads, tokens, width), with two transpositions combined into one."""
    from openvino import opset13 as op

    last = keys.get_node()
    first = last.input_value(0).get_node()
    if any(node.get_type_name() != "Transpose" for node in (first, last)):
        return keys
    orders = [numpy.array(node.input_value(1).get_node().data) for node in (first, last)]
    return op.transpose(first.input_value(0), op.constant(orders[0][orders[1]]))
