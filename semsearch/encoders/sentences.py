"""`encode` as sentence-transformers has it, for code that takes a SentenceTransformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from semsearch.arguments import check_texts, shown
from semsearch.errors import ArgumentError
from semsearch.protocols import Encoder


class EncodesSentences:
    """What encoders have so that they can stand in for a SentenceTransformer."""

    def encode(
        self: Encoder,
        sentences: str | Sequence[str],
        prompt_name: str | None = None,
        *,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        normalize_embeddings: bool = True,
        **others: Any,
    ) -> Any:
        """Unit vectors of sentences.

        >>> from semsearch import load_encoder
        >>> load_encoder("hashing:64").encode(["a cat", "a dog"], batch_size=32).shape
        (2, 64)

        Args:
            sentences: one, or several.
            prompt_name: ``query`` encodes them as queries, None and ``document`` as documents.
            batch_size: not used: batches are made by length.
            show_progress_bar: not used: there is none.
            convert_to_tensor: return a tensor of torch's.
            convert_to_numpy: not used: without `convert_to_tensor`, an array is returned.
            normalize_embeddings: not used: vectors are of unit length.
            others: further arguments of sentence-transformers, which have to be None.

        Returns:
            float32, shape (dimension,) for one sentence, else (sentences, dimension).

        Raises:
            ArgumentError: there is no such prompt, the sentences are something else, or another
                argument is given.
        """
        del batch_size, show_progress_bar, convert_to_numpy, normalize_embeddings
        for name, value in others.items():
            if value is not None:
                raise ArgumentError(f"encode takes no {name}, which is {shown(value)}")
        if prompt_name not in (None, "document", "query"):
            raise ArgumentError(f"prompt_name must be query or document, not {shown(prompt_name)}")
        one = isinstance(sentences, str)
        texts = check_texts("sentences", [sentences] if one else sentences)
        encode = self.encode_queries if prompt_name == "query" else self.encode_documents
        vectors: Any = encode(texts)
        if convert_to_tensor:
            import torch

            vectors = torch.from_numpy(vectors)
        return vectors[0] if one else vectors
