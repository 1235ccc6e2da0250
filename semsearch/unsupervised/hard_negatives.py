"""For each question a passage that is near and wrong: what in-batch negatives seldom are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from semsearch.protocols import Encoder
from semsearch.unsupervised.questions import Question

#: How far down a ranking is looked.
DEPTH = 50
#: What scores more than this part of the right passage's score may be right, too (de Souza P.
#: Moreira et al. 2024, NV-Retriever, section 3: positive-aware mining).
LARGEST_PART = 0.95
BLOCK = 512


def hard_negatives(encoder: Encoder, asked: Sequence[Question]) -> list[str]:
    """The nearest passage of another question that is not too near, for each question.

    Where the first places are all too near, it is the last one looked at.
    """
    passages = encoder.encode_documents([question.passage for question in asked])
    queries = encoder.encode_queries([question.query for question in asked])
    depth = min(DEPTH, len(asked) - 1)
    found = []
    for start in range(0, len(asked), BLOCK):
        scores = queries[start : start + BLOCK] @ passages.T
        rows = numpy.arange(len(scores))
        own = scores[rows, start + rows]
        scores[rows, start + rows] = -numpy.inf
        nearest = numpy.argpartition(-scores, depth - 1, axis=1)[:, :depth]
        order = numpy.take_along_axis(scores, nearest, axis=1).argsort(axis=1)[:, ::-1]
        nearest = numpy.take_along_axis(nearest, order, axis=1)
        falling = numpy.take_along_axis(scores, nearest, axis=1)
        too_near = falling > LARGEST_PART * own[:, None]
        chosen = numpy.minimum(too_near.sum(axis=1), depth - 1)
        found += [asked[place].passage for place in nearest[rows, chosen]]
    return found
