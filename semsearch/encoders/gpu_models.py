"""Encoders on machines with a GPU, which encodes documents; queries stay on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.specs import Precision
from semsearch.encoders.torch_models import TorchEncoder, TorchReranker
from semsearch.errors import check_texts
from semsearch.protocols import Matrix

__all__ = ["FIRST_DOCUMENTS", "GPUEncoder", "TorchReranker"]

#: The number of documents that the CPU encodes. Importing torch and starting a GPU takes several
#: seconds, in which two CPU cores encode as many passages of 60 tokens.
FIRST_DOCUMENTS = 1000

#: The precisions of torch on a GPU.
PRECISIONS = {Precision.AUTO: "fp16", Precision.FP32: "fp32", Precision.BF16: "bf16"}


class GPUEncoder(OpenVINOEncoder):
    """A bi-encoder that encodes documents on the GPU, and queries on the CPU without torch.

    A single query is not faster on a GPU, which takes seconds to start. For the same reason, the
    first `FIRST_DOCUMENTS` documents are encoded on the CPU.

    Args:
        folder: the original model.
        device: ignored; torch chooses the GPU.
        precision: that of the GPU; the CPU has fp32 for fp32, or else its best one.
    """

    def __init__(self, folder: ModelFolder, device: str | None, precision: Precision) -> None:
        on_cpu = Precision.FP32 if precision is Precision.FP32 else Precision.AUTO
        super().__init__(folder, device, on_cpu)
        self._gpu_precision = precision
        self.precision = PRECISIONS[precision]
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
        return TorchEncoder(self.folder, precision=self._gpu_precision)
