"""Several rankings of the same things into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence


def reciprocal_rank_fusion(
    rankings: Iterable[Sequence[int]], constant: int = 60
) -> list[tuple[int, float]]:
    """Items with their fused scores, best first (Cormack, Clarke & Büttcher, SIGIR 2009).

    Args:
        rankings: items, best first; an item that a ranking lacks adds nothing there.
        constant: how much the first ranks stand out; the paper's 60.
    """
    scores: dict[int, float] = defaultdict(float)
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] += 1 / (constant + rank)
    return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
