"""STS Benchmark, the original release (Cer et al. 2017)."""

from __future__ import annotations

from semsearch.datasets.folder import data_file
from semsearch.datasets.pairtable import gold_score
from semsearch.datasets.records import ScoredPair
from semsearch.datasets.textlines import cells_of, numbered_lines
from semsearch.errors import DatasetError


def read_stsbenchmark(split: str = "test") -> list[ScoredPair]:
    """Its pairs with gold scores from 0 to 5.

    Tab-separated and never quoted: genre, file, year, number, gold, both sentences, and in some
    lines where they are from.

    Args:
        split: ``train``, ``dev`` or ``test``.

    Raises:
        DatasetNotFoundError: it is not here.
        DatasetError: a line is not like that.
    """
    pairs = []
    for line in numbered_lines(data_file(f"sts/stsbenchmark/sts-{split}.csv")):
        cells = cells_of(line, "\t")
        gold = gold_score(cells[4], line.place) if len(cells) >= 7 else None
        if gold is None:
            raise DatasetError(f"{line.place}: not a scored pair of STS Benchmark")
        pairs.append(ScoredPair(cells[5], cells[6], gold))
    return pairs
