"""Communities: texts within a minimum score of a central text, the largest first.

The fast community detection of Sentence-Transformers (`util.community_detection`): each text, with
all texts within the minimum score, is a candidate. The largest is taken, then the next whose centre
is still free, without texts already taken. This returns the same groups without storing all scores
or candidates: it counts the members of each candidate, and collects them only for the largest.
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

#: The memory for masks of neighbours.
MASK_BYTES = 1 << 25
#: If more than this share of a tile's pairs are near the minimum score, rescoring all is faster.
MANY_UNCERTAIN = 1 / 64


def communities(
    vectors: Matrix,
    min_score: float,
    min_size: int,
    on_progress: Callable[[int, int], None],
) -> list[Rows]:
    """Disjoint groups; texts may be in none.

    Args:
        vectors: unit vectors, shape (n, dimension).
        min_score: the minimum score of members with the centre, rounded to six decimals.
        min_size: the minimum size of a group.
        on_progress: called with the number of pairs compared and their maximum.
    """
    n = len(vectors)
    comparison = Comparison(vectors, None)
    every = EveryTile(n)
    done, most = 0, every.comparisons + n * n
    sizes = numpy.ones(n, numpy.int64)  # each text is in its own group
    for tile in every.tiles():
        near = _near(comparison, tile, min_score)
        sizes[tile.lefts] += near.sum(axis=1)
        sizes[tile.rights] += near.sum(axis=0)
        done += near.size
        on_progress(min(done, every.comparisons), most)

    found = []
    free = numpy.ones(n, numpy.bool)
    centres = numpy.argsort(-sizes, kind="stable")
    centres = centres[sizes[centres] >= min_size]
    at_once = max(1, min(TILE_ROWS, MASK_BYTES // max(1, n)))
    while len(centres := centres[free[centres]]):
        batch, centres = centres[:at_once], centres[at_once:]
        others = numpy.flatnonzero(free)
        neighbours = _neighbours(comparison, batch, others, min_score)
        for centre, near in zip(batch, neighbours, strict=True):
            members = others[near]
            members = members[free[members]]
            if free[centre] and len(members) >= min_size:
                found.append(members)
                free[members] = False
        done += neighbours.size
        on_progress(done, most)
    on_progress(most, most)
    return found


def _neighbours(comparison: Comparison, centres: Rows, others: Rows, min_score: float) -> Mask:
    """The neighbours of each centre, including itself: shape (centres, others)."""
    neighbours = numpy.empty((len(centres), len(others)), numpy.bool)
    for start in range(0, len(others), TILE_ROWS):
        block = slice(start, start + TILE_ROWS)
        neighbours[:, block] = _near(comparison, Tile(centres, others[block], False), min_score)
    neighbours |= centres[:, None] == others
    return neighbours


def _near(comparison: Comparison, tile: Tile, min_score: float) -> Mask:
    """Which pairs of a tile reach the minimum score; those near it are rescored in float64."""
    products = comparison.products(tile)
    near: Mask = products >= min_score + MARGIN
    rows, columns = comparison.rows[tile.lefts], comparison.rows[tile.rights]
    uncertain = numpy.flatnonzero((products >= min_score - MARGIN) & ~near)
    if len(uncertain) > near.size * MANY_UNCERTAIN:
        doubles = [comparison.vectors[side].astype(numpy.float64) for side in tile[:2]]
        scores = (doubles[0] @ doubles[1].T).round(SCORE_DECIMALS).clip(-1, 1)
        return (scores >= min_score) & (products > EXCLUDED)
    for start in range(0, len(uncertain), comparison.piece):
        batch = uncertain[start : start + comparison.piece]
        pairs = comparison.scored(rows[batch // len(columns)], columns[batch % len(columns)])
        near.flat[batch] = pairs.scores >= min_score
    return near
