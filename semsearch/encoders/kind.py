"""Whether a model is of the kind that we run ourselves: BERT-like, with modules that we know."""

from __future__ import annotations

import json

from semsearch.encoders.model_files import model_modules
from semsearch.encoders.model_folder import ModelFolder

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


def why_not_bert_like(folder: ModelFolder) -> str | None:
    """What is foreign about a model, found out without loading it; None when nothing is."""
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
