"""Reads published data sets in their original formats."""

from semsearch.evaluation.datasets.pairs import (
    labelled_names,
    load_labelled_pairs,
    load_sts_set,
    sts_names,
)
from semsearch.evaluation.datasets.pairtable import PairColumns
from semsearch.evaluation.datasets.questions import read_questions
from semsearch.evaluation.datasets.records import LabelledPair, RetrievalSet, ScoredPair, StsSet
from semsearch.evaluation.datasets.retrieval import (
    load_retrieval_set,
    read_scifact,
    retrieval_names,
)
from semsearch.evaluation.datasets.sts import read_stsbenchmark

__all__ = [
    "LabelledPair",
    "PairColumns",
    "RetrievalSet",
    "ScoredPair",
    "StsSet",
    "labelled_names",
    "load_labelled_pairs",
    "load_retrieval_set",
    "load_sts_set",
    "read_questions",
    "read_scifact",
    "read_stsbenchmark",
    "retrieval_names",
    "sts_names",
]
