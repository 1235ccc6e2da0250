"""Words cut into parts at random during training (MaxMatch-Dropout, Hiraoka 2022).

A model that always sees a word as one piece does not learn the meaning of its parts, by which it
has to read unseen words.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from copy import copy
from itertools import compress
from typing import Any

import numpy
from tokenizers import Tokenizer

from semsearch.training.new_words import SHORTEST_PART, with_pieces

#: The probability that a new word is cut.
DROPPED = 0.02
#: Number of vocabularies with missing words; each batch is tokenised with one of them.
VOCABULARIES = 12


class WordDropout:
    """Tokenises batches with a model's vocabulary, from which some new words are missing.

    Which ones depends on the texts of the batch, so that a resumed run gives the same result.

    Args:
        module: the first module of a bi-encoder with WordPiece tokens.
        known: number of ids before those of the new words.
        seed: of the vocabularies.
    """

    def __init__(self, module: Any, known: int, seed: int) -> None:
        random = numpy.random.default_rng(seed)
        settings = json.loads(module.tokenizer.backend_tokenizer.to_str())
        vocabulary: dict[str, int] = settings["model"]["vocab"]
        words = [
            piece
            for piece, number in vocabulary.items()
            if number >= known and len(piece) >= SHORTEST_PART and piece.isalpha()
        ]
        self._modules = []
        for _ in range(VOCABULARIES):
            missing = set(compress(words, random.random(len(words)) < DROPPED))
            settings["model"]["vocab"] = {
                piece: number for piece, number in vocabulary.items() if piece not in missing
            }
            with_fewer = copy(module)
            with_fewer.processor = with_pieces(
                module.tokenizer, Tokenizer.from_str(json.dumps(settings))
            )
            self._modules.append(with_fewer)

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """The features of texts, as input of the model."""
        place = zlib.crc32("\n".join(texts).encode()) % VOCABULARIES
        features: dict[str, Any] = self._modules[place].preprocess(texts, **options)
        return features
