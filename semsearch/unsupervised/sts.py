"""A glance at general quality: STS Benchmark, where the machine has it."""

from __future__ import annotations

from semsearch.datasets import read_stsbenchmark
from semsearch.encoders.parity import sts_score
from semsearch.errors import DatasetNotFoundError
from semsearch.protocols import Encoder


def sts_spearman(encoder: Encoder) -> float | None:
    """Spearman × 100 on the test split; None where SEMSEARCH_DATA does not have it."""
    try:
        return sts_score(encoder, read_stsbenchmark("test"))
    except DatasetNotFoundError:
        return None
