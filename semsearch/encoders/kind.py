"""What kind of model a folder holds, found out without loading it."""

from __future__ import annotations

import json

from semsearch.encoders.model_files import model_modules
from semsearch.encoders.model_folder import ModelFolder
from semsearch.errors import DamagedModelError, EncoderError

MODEL_TYPES = {
    "bert",
    "camembert",
    "distilbert",
    "electra",
    "mpnet",
    "roberta",
    "xlm-roberta",
}
MODULES = {"Transformer", "Pooling", "Dense", "Normalize"}


class NotConvertibleError(EncoderError):
    """A model is of a kind that only torch can run."""


class ConversionFailedError(NotConvertibleError):
    """A model could not be converted, for a reason that nobody foresaw."""


def why_not_bert_like(folder: ModelFolder) -> str | None:
    """Why a model is unsupported, without loading it; None when it is supported."""
    listed = [] if folder.pooling else model_modules(folder.path)
    modules = {module.name for module in listed}
    if unknown := modules - MODULES:
        return f"it has a module {', '.join(sorted(unknown))}"
    try:
        config = json.loads((folder.path / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return "its config.json cannot be read"
    if config.get("model_type") not in MODEL_TYPES:
        return f"it is a {config.get('model_type')}, which is not BERT-like"
    return None


def check_head(folder: ModelFolder) -> None:
    """Refuse a model without a trained head: transformers would make its weights up.

    Raises:
        EncoderError: it is no cross-encoder, or gives several scores a pair.
    """
    try:
        config = json.loads((folder.path / "config.json").read_text("utf-8"))
        architectures = [str(name) for name in config.get("architectures") or ()]
        labels = len(config.get("id2label") or "01")  # transformers leaves out two, its default
    except (OSError, ValueError, TypeError, AttributeError):
        raise DamagedModelError(f"model '{folder.spec}': its config.json cannot be read") from None
    is_classifier = any(name.endswith("ForSequenceClassification") for name in architectures)
    modules = [module.type for module in model_modules(folder.path)]
    if not is_classifier and not any(".cross_encoder." in module for module in modules):
        raise EncoderError(
            f"model '{folder.spec}' is no cross-encoder: it has no trained head that scores pairs "
            "(semsearch train cross-encoder makes one)"
        )
    if is_classifier and labels > 1:
        raise EncoderError(
            f"model '{folder.spec}' gives {labels} values a pair, and not one score to rank by"
        )
