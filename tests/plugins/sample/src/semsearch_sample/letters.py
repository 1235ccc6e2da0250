"""An encoder for which texts with the same letters are similar."""

import re

import numpy

from semsearch.encoders import EncodesSentences


class LettersEncoder(EncodesSentences):
    """Counts of letters, of unit length: ``letters``, or ``letters:aeiou`` for some of them."""

    max_document_tokens = 100

    def __init__(self, spec):
        self.spec = spec
        self.letters = spec.partition(":")[2] or "abcdefghijklmnopqrstuvwxyz"
        if not self.letters.isalpha():
            raise ValueError("letters are wanted")
        self.fingerprint = f"letters-1-{self.letters}"
        self.dimension = len(self.letters) + 1

    def description(self):
        return {"letters": self.letters}

    def token_spans(self, text):
        return numpy.array([found.span() for found in re.finditer(r"\w+", text)]).reshape(-1, 2)

    def encode_queries(self, texts):
        return self.encode_documents(texts)

    def encode_documents(self, texts):
        counts = [[*map(text.lower().count, self.letters), 0.01] for text in texts]
        matrix = numpy.array(counts, numpy.float32).reshape(-1, self.dimension)
        return matrix / numpy.linalg.norm(matrix, axis=1, keepdims=True)


class Half:
    """An object that lacks half of an encoder."""

    def __init__(self, spec):
        self.spec = spec
        self.dimension = 2


def renamed(spec):
    """An encoder that calls itself by another name."""
    return LettersEncoder("letters")
