"""Hashed bags of words: vectors without a model, for baselines and fast tests."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from semsearch.encoders.base import EncodesSentences
from semsearch.errors import EncoderError, check_text, check_texts
from semsearch.protocols import Matrix, TokenSpans

_WORD = re.compile(r"\w+")


class HashingEncoder(EncodesSentences):
    """Signed feature hashing of lower-cased words (Weinberger et al. 2009), cosine-normalised.

    It does not capture meaning: texts are similar if they share words. It needs no files and is
    the same everywhere, which makes it a good fake in tests.

    Args:
        spec: ``hashing`` or ``hashing:DIMENSION``.
    """

    def __init__(self, spec: str = "hashing") -> None:
        name, _, number = spec.partition(":")
        number = number or "256"
        if name != "hashing" or not (number.isdecimal() and 2 <= int(number) <= 65_536):
            raise EncoderError(
                f"'{spec}': the dimension must be a number from 2 to 65536, as in hashing:96"
            )
        self.spec = spec
        self.dimension = int(number)
        self.fingerprint = f"hashing-1-{self.dimension}"
        self.max_document_tokens = 256

    def description(self) -> Mapping[str, Any]:
        """The maximum length of passages."""
        return {"max_tokens": self.max_document_tokens}

    def token_spans(self, text: str) -> TokenSpans:
        """The character ranges of the words of a text."""
        spans = [match.span() for match in _WORD.finditer(check_text("text", text))]
        return numpy.array(spans, numpy.int64).reshape(-1, 2)

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """The same as for documents."""
        return self.encode_documents(texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors, shape (len(texts), dimension)."""
        texts = check_texts("texts", texts)
        matrix = numpy.zeros((len(texts), self.dimension), numpy.float32)
        for row, text in zip(matrix, texts, strict=True):
            for word in _WORD.findall(text.lower()) or [text]:
                code = zlib.crc32(word.encode())
                row[code % self.dimension] += 1 if code & 0x8000_0000 else -1
            if not row.any():  # its words cancelled out
                row[0] = 1
            row /= numpy.linalg.norm(row)
        return matrix
