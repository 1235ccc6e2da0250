"""Communities: texts that score enough with one text in their middle, the largest first.

The fast community detection of Sentence-Transformers (`util.community_detection`): every text, with
all that score enough with it, is a candidate. The largest is taken, then the next whose middle is
still free, without what is taken already. This brings the same groups, but holds neither all scores
nor all candidates: it counts what each text would gather, and gathers for those that come first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy

from semsearch.pairwise import (
    EXCLUDED,
    MARGIN,
    SCORE_DECIMALS,
    TILE_ROWS,
    Comparison,
    EveryTile,
    Mask,
    Rows,
    Tile,
)
from semsearch.protocols import Matrix

#: How much memory may tell who is near whom.
MASK_BYTES = 1 << 25
#: With so many of a tile's pairs close to the score, all are multiplied again: that is faster.
MANY_DOUBTFUL = 1 / 64


def communities(
    vectors: Matrix,
    min_score: float,
    min_size: int,
    on_progress: Callable[[int, int], None],
) -> list[Rows]:
    """Groups without a common member; texts may be in none.

    Args:
        vectors: unit vectors, shape (n, dimension).
        min_score: what each member scores with the middle, or more; rounded to six decimals.
        min_size: how many texts a group has, or more.
        on_progress: called with the pairs compared, and the most there can be.
    """
    n = len(vectors)
    comparison = Comparison(vectors, None)
    every = EveryTile(n)
    done, most = 0, every.comparisons + n * n
    sizes = numpy.ones(n, numpy.int64)  # each gathers itself
    for tile in every.tiles():
        near = _near(comparison, tile, min_score)
        sizes[tile.lefts] += near.sum(axis=1)
        sizes[tile.rights] += near.sum(axis=0)
        done += near.size
        on_progress(min(done, every.comparisons), most)

    found = []
    free = numpy.ones(n, numpy.bool)
    middles = numpy.argsort(-sizes, kind="stable")
    middles = middles[sizes[middles] >= min_size]
    at_once = max(1, min(TILE_ROWS, MASK_BYTES // max(1, n)))
    while len(middles := middles[free[middles]]):
        some, middles = middles[:at_once], middles[at_once:]
        others = numpy.flatnonzero(free)
        gathered = _gathered(comparison, some, others, min_score)
        for middle, near in zip(some, gathered, strict=True):
            members = others[near]
            members = members[free[members]]
            if free[middle] and len(members) >= min_size:
                found.append(members)
                free[members] = False
        done += gathered.size
        on_progress(done, most)
    on_progress(most, most)
    return found


def _gathered(comparison: Comparison, middles: Rows, others: Rows, min_score: float) -> Mask:
    """Which of the others each middle gathers, itself among them: shape (middles, others)."""
    gathered = numpy.empty((len(middles), len(others)), numpy.bool)
    for start in range(0, len(others), TILE_ROWS):
        some = slice(start, start + TILE_ROWS)
        gathered[:, some] = _near(comparison, Tile(middles, others[some], False), min_score)
    gathered |= middles[:, None] == others
    return gathered


def _near(comparison: Comparison, tile: Tile, min_score: float) -> Mask:
    """Which pairs of a tile score enough; those that are close to it, by their final score."""
    products = comparison.products(tile)
    near: Mask = products >= min_score + MARGIN
    rows, columns = comparison.rows[tile.lefts], comparison.rows[tile.rights]
    doubtful = numpy.flatnonzero((products >= min_score - MARGIN) & ~near)
    if len(doubtful) > near.size * MANY_DOUBTFUL:
        doubles = [comparison.vectors[side].astype(numpy.float64) for side in tile[:2]]
        scores = (doubles[0] @ doubles[1].T).round(SCORE_DECIMALS).clip(-1, 1)
        return (scores >= min_score) & (products > EXCLUDED)
    for start in range(0, len(doubtful), comparison.piece):
        some = doubtful[start : start + comparison.piece]
        pairs = comparison.scored(rows[some // len(columns)], columns[some % len(columns)])
        near.flat[some] = pairs.scores >= min_score
    return near
