"""From the name of an encoder to the encoder."""

from __future__ import annotations

from semsearch.encoders.hashing import HashingEncoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_runtime import TorchEncoder
from semsearch.protocols import Encoder

__all__ = ["DEFAULT_ENCODER", "load_encoder"]

DEFAULT_ENCODER = "minilm"


def load_encoder(spec: str, device: str | None = None) -> Encoder:
    """The encoder that `spec` names.

    Its files are found and checked now; the model itself is loaded when it is first used, so that
    a run with nothing to encode never waits for it.

    Args:
        spec: ``minilm`` (all-MiniLM-L6-v2), a folder that Sentence-Transformers wrote, a name on
            the hub, or ``hashing[:DIMENSION]`` (no model at all).
        device: ``cpu``, ``cuda``, …; None takes a GPU when there is one.

    Raises:
        ModelNotFoundError: its files are neither here nor to be had from the hub.
        UnsafeModelError: its files would have to be trusted with running code.
    """
    if spec.partition(":")[0] == "hashing":
        return HashingEncoder(spec)
    return TorchEncoder(find_model(spec), device=device)
