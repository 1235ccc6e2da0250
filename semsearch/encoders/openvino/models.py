"""Encoders and rerankers on OpenVINO: converted once, into the user's cache."""

from __future__ import annotations

import json
import logging
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
from semsearch.encoders.text_model import ModelFacts
from semsearch.errors import check_texts, first_line
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from semsearch.encoders.torch_models import TorchEncoder

logger = logging.getLogger(__name__)

#: Incremented with every change of the converted files.
VERSION = 6

#: The number of documents that the CPU encodes. Importing torch and starting a GPU takes several
#: seconds, in which two CPU cores encode as many passages of 60 tokens.
FIRST_DOCUMENTS = 1000

#: The precisions of torch on a GPU.
GPU_PRECISIONS = {
    Precision.AUTO: "fp16",
    Precision.FLOAT: "fp16",
    Precision.FP32: "fp32",
    Precision.BF16: "bf16",
}

#: Why a model cannot be converted; cached, because trying takes as long as converting.
REFUSED = "refused.txt"


class OpenVINOEncoder(BiEncoder):
    """A bi-encoder on OpenVINO, converted at its first use; vectors equal torch's, within rounding.

    In int8, the model of queries and documents is quantised. Unless it is the bundled one, that
    needs the first passages of a corpus; until then, and if it loses too much, floats are used.

    Args:
        folder: the original model.
        precision: its precision.

    Raises:
        NotConvertibleError: it cannot be converted, or its vectors would change.
        EncoderError: the processor does not support that precision.
    """

    def __init__(self, folder: ModelFolder, precision: Precision) -> None:
        self._converted = converted_model("encoder", folder.whole())
        self._floats = float_precision(precision)
        self._agreement: float | None = None  # in int8, with fp32
        super().__init__(folder, self._converted.text_model(self._floats), self._floats.value)
        automatic = precision is Precision.AUTO and self._floats is Precision.FP32
        self._may_quantize = precision is Precision.INT8 or automatic
        if self._may_quantize:
            self._check_processor(warn=not automatic)
            self._quantize(())

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        listed = check_texts("texts", texts)
        self._quantize(listed)
        return super().encode_documents(listed)

    def description(self) -> Mapping[str, Any]:
        """The description of a bi-encoder; in int8, also its agreement with fp32."""
        described = super().description()
        return described if self._agreement is None else {**described, "agreement": self._agreement}

    def _check_processor(self, *, warn: bool) -> None:
        from semsearch.encoders.quantization import overflows

        self._may_quantize = not overflows()
        if warn and not self._may_quantize:
            logger.warning(
                "int8 needs a processor with VNNI; using %s, which is as fast here", self.precision
            )

    def _quantize(self, passages: Sequence[str]) -> None:
        """Change to int8 where it is wanted and possible; the first passages decide."""
        if not self._may_quantize:
            return
        from semsearch.encoders.quantization import AGREEMENT, NEAREST, quantized_model

        fingerprint = self.folder.whole().fingerprint
        if (found := quantized_model(self._converted, fingerprint, passages)) is None:
            return
        self._may_quantize = False
        model, agreement = found
        kept = agreement >= AGREEMENT
        if passages or not kept:
            logger.warning(
                "int8 finds %.1f %% of the nearest %d of fp32: using %s",
                100 * agreement,
                NEAREST,
                "int8" if kept else self.precision,
            )
        if kept:
            self.queries = self.documents = model.text_model(self._floats)
            self.precision, self._agreement = "int8", agreement


class GPUEncoder(OpenVINOEncoder):
    """A bi-encoder that encodes documents on the GPU, and queries on the CPU without torch.

    A single query is not faster on a GPU, which takes seconds to start. For the same reason, the
    first `FIRST_DOCUMENTS` documents are encoded on the CPU.

    Args:
        folder: the original model.
        precision: that of the GPU; the CPU has fp32 for fp32, or else its best one.
    """

    def __init__(self, folder: ModelFolder, precision: Precision) -> None:
        on_cpu = Precision.FP32 if precision is Precision.FP32 else Precision.FLOAT
        super().__init__(folder, on_cpu)
        self._gpu_precision = precision
        self.precision = GPU_PRECISIONS[precision]
        self._count = 0  # of documents

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors with the model's prompt for documents, shape (len(texts), dimension)."""
        listed = check_texts("texts", texts)
        self._count += len(listed)
        if self._count <= FIRST_DOCUMENTS:
            return super().encode_documents(listed)
        return self._on_gpu.encode_documents(listed)

    @cached_property
    def _on_gpu(self) -> TorchEncoder:
        from semsearch.encoders.torch_models import TorchEncoder

        return TorchEncoder(self.folder, precision=self._gpu_precision)


class OpenVINOReranker(BaseReranker):
    """A cross-encoder on OpenVINO, converted at its first use, with its activation.

    Raises:
        NotConvertibleError: it cannot be converted, or its scores would change.
        EncoderError: the processor does not support that precision.
    """

    def __init__(self, folder: ModelFolder, precision: Precision) -> None:
        floats = float_precision(precision)
        pairs = converted_model("reranker", folder).text_model(floats)
        super().__init__(folder, pairs, floats.value)


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
