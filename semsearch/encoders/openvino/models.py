"""Encoders and rerankers on OpenVINO: converted once, into the user's cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.base import BaseReranker, BiEncoder
from semsearch.encoders.cache import cached_entry
from semsearch.encoders.model_folder import ModelFolder, NotConvertibleError
from semsearch.encoders.openvino.runtime import (
    COMPILED,
    Converted,
    float_precision,
    import_openvino,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import ModelFacts, TextModel
from semsearch.errors import first_line
from semsearch.protocols import Scores

if TYPE_CHECKING:
    from semsearch.encoders.parity import Parity

#: Incremented with every change of the converted files.
VERSION = 5

#: Why a model cannot be converted; cached, because trying takes as long as converting.
REFUSED = "refused.txt"


class OpenVINOEncoder(BiEncoder):
    """A bi-encoder on OpenVINO, converted at its first use; vectors equal torch's, within rounding.

    Args:
        folder: the original model.
        device: ignored; it runs on the CPU.
        precision: its precision.

    Raises:
        NotConvertibleError: it cannot be converted, or its vectors would change.
        EncoderError: the processor does not support that precision.
    """

    def __init__(self, folder: ModelFolder, device: str | None, precision: Precision) -> None:
        super().__init__(folder)
        self._converted = converted_model("encoder", folder.whole())
        self._is_quantized = precision is Precision.INT8
        self._floats = float_precision(Precision.AUTO if self._is_quantized else precision)
        self.facts = self._converted.facts
        self.precision = "int8" if self._is_quantized else self._floats.value
        self.queries = self._converted.text_model(self._floats)  # not quantised

    @cached_property
    def documents(self) -> TextModel:  # type: ignore[override]
        """The model for documents."""
        if self._is_quantized:
            return self._quantized[0].text_model(self._floats)
        return self.queries

    def description(self) -> Mapping[str, Any]:
        """The description of a bi-encoder; with int8, also the measured parity."""
        described = super().description()
        if self._is_quantized:
            return {**described, "parity": self._quantized[1]._asdict()}
        return described

    @cached_property
    def _quantized(self) -> tuple[Converted, Parity]:
        from semsearch.encoders.quantization import quantized_model

        return quantized_model(self._converted, self.folder.whole().fingerprint)


class OpenVINOReranker(BaseReranker):
    """A cross-encoder on OpenVINO, converted at its first use, with its activation.

    Raises:
        NotConvertibleError: it cannot be converted, or its scores would change.
        EncoderError: the processor does not support that precision.
    """

    def __init__(self, folder: ModelFolder, device: str | None, precision: Precision) -> None:
        super().__init__(folder)
        converted = converted_model("reranker", folder)
        floats = float_precision(precision)
        self.precision = floats.value
        self._model = converted.text_model(floats)

    def _scores(self, pairs: Sequence[tuple[str, str]]) -> Scores:
        return self._model.run(pairs)[:, 0]


def converted_model(kind: str, folder: ModelFolder) -> Converted:
    """A converted model, from the cache or converted now.

    Args:
        kind: ``encoder`` or ``reranker``.
        folder: the model.

    Raises:
        NotConvertibleError: it cannot be converted, or its results would change.
    """

    def convert(draft: Path) -> None:
        from semsearch.encoders.openvino import conversion  # imports torch

        converters = {
            "encoder": conversion.convert_encoder,
            "reranker": conversion.convert_reranker,
        }
        try:
            converters[kind](folder, draft)
        except NotConvertibleError as error:
            (draft / REFUSED).write_text(str(error), "utf-8")
        shutil.rmtree(draft / COMPILED, ignore_errors=True)  # OpenVINO knows it by its path

    try:
        version = import_openvino().get_version().partition("-")[0]
        entry = cached_entry(f"{kind}-{VERSION}-{version}-{folder.fingerprint[:32]}", convert)
    except Exception as error:  # of libraries, the cache, memory: torch may still run it
        reason = f"its conversion for OpenVINO failed ({first_line(error)})"
        raise NotConvertibleError(reason) from error
    if (entry / REFUSED).is_file():
        raise NotConvertibleError((entry / REFUSED).read_text("utf-8"))
    facts = json.loads((entry / "facts.json").read_text("utf-8"))
    return Converted(entry, ModelFacts(**facts))
