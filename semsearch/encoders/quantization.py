"""Converted models in int8: quantised once, kept in the cache with what was lost by it.

Post-training static quantisation (Jacob et al. 2018) with SmoothQuant (Xiao et al. 2023), by NNCF.
"""

from __future__ import annotations

import io
import json
import logging
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from semsearch.encoders.cache import cached_entry
from semsearch.encoders.openvino_library import import_openvino, openvino_core
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.parity import Parity, measure_parity
from semsearch.encoders.precision import Precision, float_precision
from semsearch.encoders.sample import sample_texts
from semsearch.errors import EncoderError, MissingExtraError
from semsearch.protocols import Matrix

__all__ = ["Quantized", "quantized_model"]

logger = logging.getLogger(__name__)

#: Grows with every change of what is written here.
VERSION = 1

#: The calibration's texts: as many notes of the sample joined, so that some are short, some long.
JOINED = (1, 1, 2, 4)


class Quantized(NamedTuple):
    """A model in int8 that has passed its gate."""

    model: Converted
    parity: Parity


def quantized_model(converted: Converted, fingerprint: str) -> Quantized:
    """The model in int8, quantised and measured now if it has not been before.

    Args:
        converted: the model as it was converted from torch.
        fingerprint: of that model.

    Raises:
        EncoderError: it loses too much.
        DatasetNotFoundError: what it is measured on is not here.
        MissingExtraError: NNCF is not installed.
    """
    version = import_openvino().get_version().partition("-")[0]
    name = f"int8-{VERSION}-{version}-{fingerprint[:32]}"
    entry = cached_entry(name, lambda draft: _quantize(converted, draft))
    parity = Parity(**json.loads((entry / "parity.json").read_text("utf-8")))
    if faults := parity.faults():
        raise EncoderError(f"int8 loses too much of this model: {'; '.join(faults)}")
    return Quantized(converted._replace(folder=entry), parity)


class _Halves(NamedTuple):
    """A model as it will be used: queries by one form of it, documents by another."""

    queries: OpenVINORuntime
    documents: OpenVINORuntime
    prompts: dict[str, str]

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        return self.queries.encode(texts, self.prompts.get("query", ""))

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        return self.documents.encode(texts, self.prompts.get("document", ""))


def _quantize(converted: Converted, draft: Path) -> None:
    """Write the quantised model, its tokenizer and its measured losses into a folder."""
    logger.warning("quantising the model, and measuring what it loses; this is done once")
    exact = OpenVINORuntime(converted, Precision.FP32)
    texts = _calibration_texts()
    with _quiet_nncf() as nncf:
        model = openvino_core().read_model(str(converted.folder / "model.xml"))
        quantized = nncf.quantize(
            model,
            nncf.Dataset([exact.features(text) for text in texts]),
            subset_size=len(texts),
            model_type=nncf.ModelType.TRANSFORMER,
            ignored_scope=nncf.IgnoredScope(names=_contractions(model)),
        )
    import_openvino().save_model(quantized, str(draft / "model.xml"), compress_to_fp16=False)
    shutil.copy(converted.folder / "tokenizer.json", draft)
    floats = float_precision(Precision.AUTO)
    parity = measure_parity(
        _Halves(exact, exact, converted.prompts),
        _Halves(
            OpenVINORuntime(converted, floats),
            OpenVINORuntime(converted._replace(folder=draft), floats),
            converted.prompts,
        ),
    )
    logger.warning("int8: %s", parity)
    (draft / "parity.json").write_text(json.dumps(parity._asdict()), "utf-8")


def _calibration_texts() -> list[str]:
    """Texts of several lengths, made of the sample corpus."""
    notes = sample_texts()
    texts: list[str] = []
    place = 0
    while place < len(notes):
        joined = JOINED[len(texts) % len(JOINED)]
        texts.append(" ".join(notes[place : place + joined]))
        place += joined
    return texts


@contextmanager
def _quiet_nncf() -> Iterator[Any]:
    """NNCF, without its bars and its advice."""
    import_openvino()  # first: it keeps telemetry from being imported
    try:
        import nncf
    except ImportError:
        raise MissingExtraError("nncf", "int8", "quantising a model") from None
    logging.getLogger("nncf").setLevel(logging.ERROR)  # its own way changes others' handlers, too
    with io.StringIO() as nowhere, redirect_stdout(nowhere), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield nncf


def _contractions(model: Any) -> list[str]:
    """The matrix products that make many numbers few: the second halves of feed-forward blocks.

    Their input is what the activation function left, with outliers that int8 cannot hold beside
    the rest; most of what quantisation loses is lost there.
    """
    products = [node for node in model.get_ordered_ops() if node.get_type_name() == "MatMul"]
    return [
        node.get_friendly_name()
        for node in products
        if _width(node.input_value(0)) > _width(node.output(0))
        and node.input_value(1).get_partial_shape().is_static
    ]


def _width(port: Any) -> int:
    """The size of the last axis; 0 when it is not fixed."""
    last = port.get_partial_shape()[-1]
    return int(last.get_length()) if last.is_static else 0
