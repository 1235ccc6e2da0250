"""An encoder as an MTEB model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semsearch.encoders import load_encoder
from semsearch.errors import MissingExtraError
from semsearch.protocols import Encoder, Matrix

try:
    from mteb.models.abs_encoder import AbsEncoder
    from mteb.models.model_meta import ModelMeta, ScoringFunction
    from mteb.types import PromptType
except ImportError as error:
    raise MissingExtraError("mteb", "mteb", __name__) from error


class SemsearchEncoder(AbsEncoder):
    """A semsearch encoder for `mteb.evaluate`.

    Queries of retrieval tasks are encoded as queries, all other texts as documents.

    Args:
        encoder: an encoder, or a spec such as ``minilm``, which is loaded in fp32, as published
            results are.
        revision: ignored; results are stored under the fingerprint of the encoder.
    """

    def __init__(self, encoder: str | Encoder, revision: str | None = None) -> None:
        del revision
        self.model = (
            load_encoder(encoder, precision="fp32") if isinstance(encoder, str) else encoder
        )
        spec = Path(self.model.spec)  # the results name a folder, not where it is
        name = re.sub(r"[^\w.-]+", "-", spec.name if spec.is_absolute() else str(spec))
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": f"semsearch/{name}",
                "revision": self.model.fingerprint,
                "embed_dim": self.model.dimension,
                "max_tokens": self.model.max_document_tokens,
                "similarity_fn_name": ScoringFunction.COSINE,
            }
        )

    def encode(
        self,
        inputs: Iterable[dict[str, Any]],
        *,
        prompt_type: PromptType | None = None,
        **_: Any,
    ) -> Matrix:
        """Encode batches, each with its texts under ``text``; shape (texts, dimension)."""
        texts = [text for batch in inputs for text in batch["text"]]
        if prompt_type == PromptType.query:
            return self.model.encode_queries(texts)
        return self.model.encode_documents(texts)
