"""Published data sets, read as their authors ship them."""

from semsearch.datasets.folder import data_file
from semsearch.datasets.records import RetrievalSet, ScoredPair
from semsearch.datasets.scifact import read_scifact
from semsearch.datasets.stsbenchmark import read_stsbenchmark

__all__ = ["RetrievalSet", "ScoredPair", "data_file", "read_scifact", "read_stsbenchmark"]
