"""Converted models in int8: quantised once, and cached with the measured loss of quality.

Post-training static quantisation (Jacob et al. 2018) by NNCF, after the treatment of outliers.
"""

from __future__ import annotations

import io
import json
import logging
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.openvino.runtime import (
    COMPILED,
    Converted,
    float_precision,
    import_openvino,
    openvino_core,
)
from semsearch.encoders.outliers import (
    RECIPE,
    Recipe,
    channel_ranges,
    is_linear,
    split_outlier_units,
)
from semsearch.encoders.parity import Parity, measure_parity, read_held_out
from semsearch.encoders.sample import sample_texts
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import TextModel
from semsearch.errors import EncoderError, MissingExtraError
from semsearch.protocols import Matrix

logger = logging.getLogger(__name__)

#: Incremented with every change of the written files.
VERSION = 7

#: Operations that are never quantised, besides products of two activations: embedding look-ups.
FLOATS = ["Gather"]

#: Texts encoded between two checks of the time, and the seconds between progress messages.
TEXTS_AT_ONCE = 256
SECONDS_BETWEEN_LINES = 10

#: The numbers of sample notes joined into calibration texts, for short and long texts.
JOINED = (1, 1, 2, 4)


class Quantized(NamedTuple):
    """An int8 model that passed the quality gate."""

    model: Converted
    parity: Parity


def quantized_model(converted: Converted, fingerprint: str) -> Quantized:
    """The int8 form of a model, from the cache or quantised and measured now.

    Args:
        converted: the converted model.
        fingerprint: of the original model.

    Raises:
        EncoderError: the processor is not suitable, or the loss of quality is too large.
        DatasetNotFoundError: a data set for the measurement is not available.
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
    parity = Parity(**json.loads((entry / "parity.json").read_text("utf-8")))
    if faults := parity.faults():
        raise EncoderError(f"int8 loses too much quality of this model: {'; '.join(faults)}")
    return Quantized(converted._replace(folder=entry), parity)


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


class MixedPrecisionModel(NamedTuple):
    """A model as it will be used, with different forms for queries and documents."""

    queries: TextModel
    documents: TextModel
    countdown: Countdown | None = None

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries, shape (len(texts), dimension)."""
        return self._encode(self.queries, texts, "query")

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of documents, shape (len(texts), dimension)."""
        return self._encode(self.documents, texts, "document")

    def _encode(self, model: TextModel, texts: Sequence[str], name: str) -> Matrix:
        rows = []
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            block = texts[start : start + TEXTS_AT_ONCE]
            rows.append(model.encode(block, model.facts.prompts.get(name, "")))
            if self.countdown:
                self.countdown.count(len(block))
        return numpy.concatenate(rows)


class Countdown:
    """Logs the number of encoded texts and the remaining time at intervals.

    Args:
        texts: the total number of texts.
    """

    def __init__(self, texts: int) -> None:
        self._texts = texts
        self._done = 0
        self._started = self._logged = time.monotonic()

    def count(self, texts: int) -> None:
        """Count encoded texts."""
        self._done += texts
        now = time.monotonic()
        if now - self._logged >= SECONDS_BETWEEN_LINES:
            self._logged = now
            left = (now - self._started) * (self._texts - self._done) / self._done
            progress = f"{self._done:,} of {self._texts:,} texts encoded, about {left:.0f} s left"
            logger.warning("int8: %s", progress)


def _quantize(converted: Converted, draft: Path) -> None:
    """Write the quantised model and its measured parity into a folder."""
    _check_nncf()
    held_out = read_held_out()  # before the work, because it may be unavailable
    logger.warning("int8: quantising the model and measuring its loss takes a few minutes, once")
    quantize(converted, draft)
    exact = converted.text_model(Precision.FP32)
    floats = float_precision(Precision.AUTO)
    documents = converted._replace(folder=draft).text_model(floats)
    countdown = Countdown(2 * held_out.texts)
    parity = measure_parity(
        held_out,
        MixedPrecisionModel(exact, exact, countdown),
        MixedPrecisionModel(converted.text_model(floats), documents, countdown),
    )
    logger.warning("int8: %s", parity)
    shutil.rmtree(draft / COMPILED, ignore_errors=True)  # OpenVINO knows it by its path
    (draft / "parity.json").write_text(json.dumps(parity._asdict()), "utf-8")


def quantize(converted: Converted, draft: Path, recipe: Recipe = RECIPE) -> None:
    """Write a model in int8, and its tokenizer, into a folder.

    Args:
        converted: the converted model.
        draft: the folder.
        recipe: the treatment of outliers.

    Raises:
        MissingExtraError: NNCF is not installed.
    """
    exact = converted.text_model(Precision.FP32)
    inputs = [exact.features(text) for text in _calibration_texts()]
    with _quiet_nncf() as nncf:
        model = openvino_core().read_model(str(converted.folder / "model.xml"))
        floats = split_outlier_units(model, channel_ranges(model, inputs), recipe)
        floats += _products_of_activations(model)
        quantized = nncf.quantize(
            model,
            nncf.Dataset(inputs),
            subset_size=len(inputs),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(names=floats, types=FLOATS, validate=False),
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                smooth_quant_alphas=nncf.AdvancedSmoothQuantParameters(matmul=-1),  # done above
                disable_bias_correction=True,  # with few texts, it does more harm than good
            ),
        )
    import_openvino().save_model(quantized, str(draft / "model.xml"), compress_to_fp16=False)
    shutil.copy(converted.folder / "tokenizer.json", draft)


def _products_of_activations(model: Any) -> list[str]:
    """The names of the matrix products of attention."""
    return [
        node.get_friendly_name()
        for node in model.get_ordered_ops()
        if node.get_type_name() == "MatMul" and not is_linear(node)
    ]


def _calibration_texts() -> list[str]:
    """Texts of several lengths from the sample corpus."""
    notes = sample_texts()
    texts: list[str] = []
    place = 0
    while place < len(notes):
        joined = JOINED[len(texts) % len(JOINED)]
        texts.append(" ".join(notes[place : place + joined]))
        place += joined
    return texts


def _check_nncf() -> None:
    if find_spec("nncf") is None:
        raise MissingExtraError("nncf", "int8", "quantising a model")


@contextmanager
def _quiet_nncf() -> Iterator[Any]:
    """NNCF, without progress bars and advice."""
    import_openvino()  # first: it disables telemetry
    _check_nncf()
    import nncf

    logging.getLogger("nncf").setLevel(logging.ERROR)  # its own function changes other handlers
    with io.StringIO() as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield nncf
