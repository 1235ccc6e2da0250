"""Plain BERTs as encoders: ``MODEL@POOLING``, the untrained rows of the SBERT paper.

Reimers & Gurevych 2019, section 3: the sentence vector is made of what the last layer says of each
token, without any training for it.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["Pooling", "repooled", "split_pooling"]


class Pooling(Enum):
    """How the tokens' vectors become one. Padding has no part in any of them."""

    MEAN = "mean"  #: over all tokens, [CLS] and [SEP] among them
    CLS = "cls"  #: the first token's vector
    MAX = "max"  #: the greatest value of each dimension over all tokens
    POOLER = "pooler"  #: the first token's through BERT's own dense layer and tanh


def split_pooling(spec: str) -> tuple[str, Pooling | None]:
    """The model and the pooling that a spec asks for; a folder may have an @ in its name."""
    name, mark, pooling = spec.rpartition("@")
    if not mark or not name or Path(spec).expanduser().is_dir():
        return spec, None
    try:
        return name, Pooling(pooling)
    except ValueError:
        choices = ", ".join(choice.value for choice in Pooling)
        raise EncoderError(f"no pooling '{pooling}' in '{spec}' (poolings: {choices})") from None


def repooled(model: SentenceTransformer, pooling: Pooling) -> SentenceTransformer:
    """The model's transformer with that pooling, and with nothing else of it: no prompts either.

    Raises:
        EncoderError: pooler output is asked of a model that has no trained pooler.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    transformer = model[0]
    if not isinstance(transformer, modules.Transformer):
        raise EncoderError(
            f"@{pooling.value} needs a transformer, not {type(transformer).__name__}"
        )
    if pooling is not Pooling.POOLER:
        pooled = modules.Pooling(transformer.get_embedding_dimension(), pooling.value)
        return SentenceTransformer(modules=[transformer, pooled], device=str(model.device))
    if getattr(transformer.model, "pooler", None) is None:
        raise EncoderError(f"@pooler: a {transformer.model.config.model_type} has no pooler")
    transformer.modality_config["text"]["method_output_name"] = "pooler_output"
    transformer.module_output_name = "sentence_embedding"
    return SentenceTransformer(modules=[transformer], device=str(model.device))
