"""Converted models in int8: quantised once, and cached with their measured agreement with fp32.

Post-training static quantisation (Jacob et al. 2018) by NNCF, with SmoothQuant (Xiao et al. 2023).
"""

from __future__ import annotations

import csv
import io
import logging
import shutil
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import cycle, islice, takewhile
from pathlib import Path

import numpy
from numpy.typing import NDArray

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.openvino.runtime import (
    COMPILED,
    Converted,
    float_precision,
    import_openvino,
    openvino_core,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import TextModel
from semsearch.errors import EncoderError, MissingExtraError

logger = logging.getLogger(__name__)

#: Incremented with every change of the written files.
VERSION = 9

#: SmoothQuant's alpha: how much of the activations' range is moved to the weights, from 0 to 1. In
#: a BERT, a few channels are ten times as large as the rest and cause most of the loss.
ALPHA = 0.8

#: The depth of rankings, and the share of the nearest documents of fp32 that int8 must find.
NEAREST, AGREEMENT = 10, 0.93

#: The numbers of sample notes joined into calibration texts, for short and long texts.
JOINED = (1, 1, 2, 4)


def quantized_model(converted: Converted, fingerprint: str) -> tuple[Converted, float]:
    """The int8 form of a model and its agreement with fp32, from the cache or computed now.

    Args:
        converted: the converted model.
        fingerprint: of the original model.

    Raises:
        EncoderError: the processor is not suitable, or the agreement is too low.
        DatasetNotFoundError: SciFact, on which it is measured, is not available.
        MissingExtraError: NNCF is not installed.
    """
    if overflows():
        raise EncoderError(
            "int8 needs a processor with VNNI; on this one it would be no faster and lose quality; "
            "use --precision fp32 or auto"
        )
    version = import_openvino().get_version().partition("-")[0]
    name = f"int8-{VERSION}-{version}-{fingerprint[:32]}"
    entry = cached_entry(name, lambda draft: _quantize(converted, draft))
    found = float((entry / "agreement").read_text("utf-8"))
    if not found >= AGREEMENT:
        raise EncoderError(
            f"int8 loses too much quality of this model: top {NEAREST} agreement {found:.3f}"
        )
    return converted._replace(folder=entry), found


@cache
def overflows() -> bool:
    """Whether sums of int8 products overflow on this processor, tried with the largest ones.

    They do on x86 without VNNI, which adds two products in 16 bits.
    """
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


def _quantize(converted: Converted, draft: Path) -> None:
    """Write the quantised model and its agreement with fp32 into a folder."""
    from semsearch.evaluation.datasets import read_scifact

    if find_spec("nncf") is None:
        raise MissingExtraError("nncf", "int8", "quantising a model")
    scifact = read_scifact("train")  # before the work, because it may be unavailable
    logger.warning("int8: quantising the model and measuring its loss takes a few minutes, once")
    quantize(converted, draft)
    texts = [*scifact.queries.values()], [*scifact.documents.values()]
    exact = converted.text_model(Precision.FP32)
    floats = float_precision(Precision.AUTO)
    documents = converted._replace(folder=draft).text_model(floats)
    found = agreement(
        nearest(exact, exact, *texts), nearest(converted.text_model(floats), documents, *texts)
    )
    logger.warning("int8: top %d agreement %.3f", NEAREST, found)
    shutil.rmtree(draft / COMPILED, ignore_errors=True)  # OpenVINO knows it by its path
    (draft / "agreement").write_text(repr(found), "utf-8")


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


def quantize(converted: Converted, draft: Path) -> None:
    """Write a model in int8, and its tokenizer, into a folder.

    Args:
        converted: the converted model.
        draft: the folder.
    """
    exact = converted.text_model(Precision.FP32)
    inputs = [exact.features(text) for text in _calibration_texts()]
    import_openvino()  # before NNCF: it disables telemetry
    import nncf

    logging.getLogger("nncf").setLevel(logging.ERROR)  # its own function changes other handlers
    model = openvino_core().read_model(str(converted.folder / "model.xml"))
    products_of_activations = [
        node.get_friendly_name()
        for node in model.get_ordered_ops()
        if node.get_type_name() == "MatMul"
        and node.input_value(1).get_node().get_type_name() != "Constant"
    ]
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():  # progress bars and advice
        warnings.simplefilter("ignore")
        quantized = nncf.quantize(
            model,
            nncf.Dataset(inputs),
            subset_size=len(inputs),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(
                names=products_of_activations, types=["Gather"], validate=False
            ),
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(matmul=ALPHA),
                disable_bias_correction=True,  # with few texts, it does more harm than good
            ),
        )
    import_openvino().save_model(quantized, str(draft / "model.xml"), compress_to_fp16=False)
    shutil.copy(converted.folder / "tokenizer.json", draft)


def _calibration_texts() -> list[str]:
    """Texts of several lengths from the sample corpus."""
    sample = (files("semsearch.corpus") / "sample" / "notes.csv").read_text("utf-8")
    notes = (row["text"] for row in csv.DictReader(io.StringIO(sample)))
    joined = (" ".join(islice(notes, count)) for count in cycle(JOINED))
    return list(takewhile(bool, joined))
