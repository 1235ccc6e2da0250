"""Bi-encoders for OpenVINO: pooling and normalisation are inside the converted model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semsearch.encoders.conversion import (
    PROBE,
    NotConvertibleError,
    cached_conversion,
    save_converted,
)
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.openvino_runtime import Converted, OpenVINORuntime
from semsearch.encoders.precision import Precision
from semsearch.encoders.torch_runtime import TorchEncoder

#: The least cosine between the vectors of the two runtimes, both in fp32.
PARITY = 0.9999


def converted_encoder(folder: ModelFolder, fingerprint: str) -> Converted:
    """The model, converted now if it has not been before.

    Raises:
        NotConvertibleError: it is not BERT-like, its vectors would be other ones, or its
            conversion failed.
    """
    return cached_conversion("openvino", folder, fingerprint, _convert)


def _convert(folder: ModelFolder, draft: Path) -> None:
    encoder = TorchEncoder(folder, device="cpu", attention="eager")
    model = encoder.model
    prompts = {name: text for name, text in model.prompts.items() if text}
    if prompts and not all(getattr(module, "include_prompt", True) for module in model):
        raise NotConvertibleError("it leaves its prompts out of the pooling")
    converted = save_converted(
        model, _unit_vectors, draft, dimension=encoder.dimension, prompts=prompts
    )
    runtime = OpenVINORuntime(converted, Precision.FP32)
    cosines = (runtime.encode(PROBE) * encoder.encode_plainly(PROBE)).sum(axis=1)
    if not cosines.min() >= PARITY:
        raise NotConvertibleError(f"its vectors would change (cosine {cosines.min():.4f})")


def _unit_vectors(features: dict[str, Any]) -> Any:
    from torch.nn.functional import normalize

    return normalize(features["sentence_embedding"], dim=1)
