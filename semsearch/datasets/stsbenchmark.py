"""STS Benchmark, the original release (Cer et al. 2017)."""

from __future__ import annotations

from semsearch.datasets.folder import data_file
from semsearch.datasets.records import ScoredPair

__all__ = ["read_stsbenchmark"]


def read_stsbenchmark(split: str = "test") -> list[ScoredPair]:
    """Its pairs with gold scores from 0 to 5.

    Tab-separated and never quoted: genre, file, year, number, gold, both sentences, and in some
    lines where they are from.

    Args:
        split: ``train``, ``dev`` or ``test``.

    Raises:
        DatasetNotFoundError: it is not here.
    """
    pairs = []
    with data_file(f"sts/stsbenchmark/sts-{split}.csv").open(
        encoding="utf-8", newline="\n"
    ) as file:
        for line in file:
            cells = line.rstrip("\n").split("\t")
            pairs.append(ScoredPair(cells[5], cells[6], float(cells[4])))
    return pairs
