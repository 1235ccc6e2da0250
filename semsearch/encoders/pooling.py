"""Plain BERTs as encoders: ``MODEL@POOLING``, the untrained rows of the SBERT paper.

Reimers & Gurevych 2019, section 3: the sentence vector is made of what the last layer says of each
token, without any training for it.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch.nn import Module


class Pooling(Enum):
    """How the tokens' vectors become one. Padding has no part in any of them."""

    MEAN = "mean"  #: over all tokens, [CLS] and [SEP] among them
    CLS = "cls"  #: the first token's vector
    MAX = "max"  #: the greatest value of each dimension over all tokens
    POOLER = "pooler"  #: the first token's through BERT's own dense layer and tanh


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
    dimension = transformer.get_embedding_dimension()
    if pooling is Pooling.POOLER:
        pooler = getattr(transformer.model, "pooler", None)
        if pooler is None:
            raise EncoderError(f"@pooler: a {transformer.model.config.model_type} has no pooler")
        pooled = _pooler_module(pooler, dimension)
    else:
        pooled = modules.Pooling(dimension, pooling.value)
    return SentenceTransformer(modules=[transformer, pooled], device=str(model.device))


def _pooler_module(pooler: Module, dimension: int) -> Module:
    """A transformer's own pooler as one of Sentence-Transformers' modules."""
    from torch.nn import Module

    class Pooler(Module):
        pooling_mode = Pooling.POOLER.value

        def __init__(self) -> None:
            super().__init__()
            self.pooler = pooler

        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return features | {"sentence_embedding": self.pooler(features["token_embeddings"])}

        def get_embedding_dimension(self) -> int:
            return dimension

    return Pooler()
