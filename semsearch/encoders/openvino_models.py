"""Models on a plain CPU: converted once, into the user's cache, then run without torch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.arguments import check_pairs, check_texts
from semsearch.encoders.cache import cached_entry
from semsearch.encoders.model_folder import (
    ConversionFailedError,
    ModelFolder,
    NotConvertibleError,
    why_not_bert_like,
)
from semsearch.encoders.openvino_runtime import Converted, float_precision, import_openvino
from semsearch.encoders.specs import CROSS_ENCODER_PREFIX, Precision
from semsearch.encoders.text_model import BiEncoder, ModelFacts, TextModel, running
from semsearch.errors import first_line
from semsearch.protocols import Encoder, Reranker, Scores

if TYPE_CHECKING:
    from semsearch.encoders.quantization import Quantized

#: Grows with every change of what a conversion writes.
VERSION = 4


def load_encoder(folder: ModelFolder, device: str | None, precision: Precision) -> Encoder:
    """A bi-encoder, converted now if it has not been before.

    Raises:
        NotConvertibleError: it is not BERT-like, its vectors would be other ones, or its
            conversion failed.
        EncoderError: the processor or the model is not fit for that precision.
    """
    del device  # a CPU
    return OpenVINOEncoder(folder, converted_model("encoder", folder), precision)


def load_reranker(folder: ModelFolder, device: str | None, precision: Precision) -> Reranker:
    """A cross-encoder with its activation, converted now if it has not been before.

    Raises:
        NotConvertibleError: it is not BERT-like, its scores would be other ones, or its
            conversion failed.
        EncoderError: the processor is not fit for that precision.
    """
    del device
    return OpenVINOReranker(folder, converted_model("reranker", folder), precision)


class OpenVINOEncoder(BiEncoder):
    """An encoder that OpenVINO runs.

    Args:
        folder: the model that was converted; the vectors are the same, within rounding.
        converted: the model in the cache.
        precision: in which numbers it computes.

    Raises:
        EncoderError: the processor or the model is not fit for that precision.
    """

    def __init__(self, folder: ModelFolder, converted: Converted, precision: Precision) -> None:
        super().__init__(folder)
        self._converted = converted
        self._is_quantized = precision is Precision.INT8
        self._floats = float_precision(Precision.AUTO if self._is_quantized else precision)
        self._queries = converted.text_model(self._floats)

    @property
    def facts(self) -> ModelFacts:
        """What must be known of the model."""
        return self._converted.facts

    @property
    def precision(self) -> str:
        """In which numbers it computes; of int8, documents."""
        return Precision.INT8.value if self._is_quantized else self._floats.value

    @property
    def queries(self) -> TextModel:
        """What queries run on; they are few, and need not be quantised."""
        return self._queries

    @cached_property
    def documents(self) -> TextModel:
        """What documents run on."""
        if self._is_quantized:
            return self._quantized.model.text_model(self._floats)
        return self._queries

    def description(self) -> Mapping[str, Any]:
        """As that of any bi-encoder; of int8, also what the quantised model's gate has measured."""
        described = super().description()
        if self._is_quantized:
            return {**described, "parity": self._quantized.parity._asdict()}
        return described

    @cached_property
    def _quantized(self) -> Quantized:
        from semsearch.encoders.quantization import quantized_model

        return quantized_model(self._converted, self.fingerprint)


class OpenVINOReranker:
    """A cross-encoder that OpenVINO runs, in bf16 where the processor has it.

    Raises:
        EncoderError: the processor is not fit for that precision.
    """

    def __init__(self, folder: ModelFolder, converted: Converted, precision: Precision) -> None:
        self.spec = CROSS_ENCODER_PREFIX + folder.spec
        floats = float_precision(precision)
        self.precision = floats.value
        self._model = converted.text_model(floats)

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """How well each passage answers, higher is better, shape (len(passages),)."""
        return self.score_pairs([(query, passage) for passage in check_texts("passages", passages)])

    def score_pairs(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        """One score a pair, higher is better, shape (len(pairs),)."""
        pairs = check_pairs("pairs", pairs)
        with running(self.spec):
            return self._model.run(pairs)[:, 0]


def converted_model(kind: str, folder: ModelFolder) -> Converted:
    """A converted model, made now if it has not been before.

    Args:
        kind: ``encoder`` or ``reranker``.
        folder: the model.

    Raises:
        NotConvertibleError: it is not BERT-like, or would say something else.
        ConversionFailedError: anything else went wrong, the model itself being broken included.
    """
    if reason := why_not_bert_like(folder):
        raise NotConvertibleError(reason)
    try:
        version = import_openvino().get_version().partition("-")[0]
        name = f"{kind}-{VERSION}-{version}-{folder.fingerprint[:32]}"
        return read_converted(cached_entry(name, lambda draft: _convert(kind, folder, draft)))
    except NotConvertibleError:
        raise
    except Exception as error:  # of the libraries, the cache, the memory: torch may yet run it
        reason = f"its conversion for OpenVINO failed ({first_line(error)})"
        raise ConversionFailedError(reason) from error


def read_converted(folder: Path) -> Converted:
    """The converted model in a folder."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    return Converted(folder, ModelFacts(**facts))


def _convert(kind: str, folder: ModelFolder, draft: Path) -> None:
    from semsearch.encoders import conversion  # once in a model's life

    convert = {"encoder": conversion.convert_encoder, "reranker": conversion.convert_reranker}
    converted = convert[kind](folder, draft)
    conversion.keep_compiled(converted)
