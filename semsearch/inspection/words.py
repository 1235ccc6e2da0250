"""Inspects word encoders: each word has one vector, regardless of its context."""

from __future__ import annotations

import numpy

from semsearch.inspection.records import Inspection, Token, TokenKind
from semsearch.protocols import Encoder, KnowsWords


def read_by_words(encoder: Encoder, text: str) -> Inspection:
    """Inspect a text, and each of its words by itself; the text is never truncated."""
    spans = encoder.token_spans(text).tolist()
    words = [text[start:end] for start, end in spans]
    distinct = dict.fromkeys(words)
    known = {
        word: encoder.knows(word) if isinstance(encoder, KnowsWords) else None for word in distinct
    }
    encoded = [word for word in distinct if known[word] is not False]
    positions = {word: row for row, word in enumerate(encoded)}
    sentence = encoder.encode_documents([text])[0]
    rows = encoder.encode_documents(encoded)
    missing = numpy.full((1, encoder.dimension), numpy.nan, numpy.float32)
    vectors = numpy.concatenate([rows, missing])[[positions.get(word, -1) for word in words]]
    cosines = [float(cosine) for cosine in vectors @ sentence]
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tuple(
            Token(
                word,
                None,
                TokenKind.TEXT,
                1,
                start,
                end,
                known[word],
                cosine if word in positions else None,
            )
            for word, (start, end), cosine in zip(words, spans, cosines, strict=True)
        ),
        text_tokens=len(words),
        read_to=len(text),
        max_tokens=None,
        pooling=None,
        norm=None,
        vector=sentence,
        token_vectors=vectors,
        poolings=None,
    )
