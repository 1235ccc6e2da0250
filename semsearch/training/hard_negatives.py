"""Hard negatives: passages similar to a question that they do not answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from semsearch.protocols import Encoder
from semsearch.training.questions import Question

#: How many queries are compared with all passages at once.
BLOCK = 512
#: Number of top-ranked passages that hard negatives are chosen from.
DEPTH = 50
#: A passage that scores above this fraction of the positive's score may be relevant, too (de Souza
#: P. Moreira et al. 2024, NV-Retriever, section 3: positive-aware mining).
LARGEST_PART = 0.95


def hard_negatives(encoder: Encoder, asked: Sequence[Question]) -> list[str]:
    """For each question, the nearest passage of another one that is not too near.

    If the top `DEPTH` passages are all too near, the last of them is taken.
    """
    passages = [question.passage for question in asked]
    depth = min(DEPTH, len(asked) - 1)
    vectors = encoder.encode_documents(passages)
    queries = encoder.encode_queries([question.query for question in asked])
    found: list[str] = []
    for start in range(0, len(asked), BLOCK):
        scores = queries[start : start + BLOCK] @ vectors.T
        rows = numpy.arange(len(scores))
        own = scores[rows, start + rows]
        scores[rows, start + rows] = -numpy.inf
        nearest = numpy.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        order = numpy.argsort(-numpy.take_along_axis(scores, nearest, axis=1), axis=1)
        nearest = numpy.take_along_axis(nearest, order, axis=1)
        too_near = numpy.take_along_axis(scores, nearest, axis=1) > LARGEST_PART * own[:, None]
        chosen = numpy.minimum(too_near.sum(axis=1), depth - 1)
        found += [passages[place] for place in nearest[rows, chosen]]
    return found
