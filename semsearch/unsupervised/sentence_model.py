"""Sentence encoders while they are trained: loaded to be changed, run with gradients, written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.encoders.model_folder import find_model
from semsearch.encoders.torch_models import TorchEncoder, quiet_transformers
from semsearch.unsupervised.loop import autocast, best_device

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

#: To which lengths are padded: on a CPU, each new shape of a product costs memory.
MULTIPLE = 16


def trainable_encoder(spec: str) -> TorchEncoder:
    """An encoder on torch in fp32; its ``model`` may be trained, and it then encodes with that.

    Attention drops nothing out: so it is one fused kernel, where with dropout the weights of all
    heads are written out, which takes more than twice the time for long passages. What comes
    after it does drop out.

    Raises:
        EncoderError: it cannot be found, or not be loaded.
    """
    folder = find_model(spec)
    folder.check_whole()
    encoder = TorchEncoder(folder, device=best_device())
    for module in encoder.model.modules():
        if type(module).__name__.endswith("SelfAttention") and hasattr(module, "dropout"):
            module.dropout.p = 0.0
    return encoder


def embedded(model: SentenceTransformer, texts: Sequence[str], prompt: str = "") -> torch.Tensor:
    """Vectors with gradients, fp32, of any length, shape (len(texts), dimension)."""
    device = model.device
    longest = model.get_max_seq_length() or 0
    padding = {"text": {"pad_to_multiple_of": MULTIPLE if longest % MULTIPLE == 0 else None}}
    inputs = model.preprocess([prompt + text for text in texts], processing_kwargs=padding)
    features: dict[str, Any] = {
        name: value.to(device) if hasattr(value, "to") else value for name, value in inputs.items()
    }
    with autocast(device.type):
        vectors: torch.Tensor = model(features)["sentence_embedding"]
    return vectors.float()


def write_model(model: SentenceTransformer, folder: Path, card: str) -> None:
    """Write a model as sentence-transformers does, with a card of ours."""
    with quiet_transformers():
        model.save(str(folder), create_model_card=False, safe_serialization=True)
    (folder / "README.md").write_text(card, "utf-8")
