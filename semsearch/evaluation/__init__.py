"""Evaluates encoders, rerankers and BM25 with standard measures and 95 % intervals."""

from semsearch.evaluation.pair_scorers import CosineScorer, PairScorer, load_pair_scorer
from semsearch.evaluation.rankers import Collection, Ranker, Ranking, index_rankers, load_rankers
from semsearch.evaluation.retrieval import MEASURES, IrEvaluation, evaluate_retrieval
from semsearch.evaluation.statistics import Difference, Interval
from semsearch.evaluation.sts import Aggregation, StsEvaluation, evaluate_sts
from semsearch.evaluation.trec import read_run, write_run

__all__ = [
    "MEASURES",
    "Aggregation",
    "Collection",
    "CosineScorer",
    "Difference",
    "Interval",
    "IrEvaluation",
    "PairScorer",
    "Ranker",
    "Ranking",
    "StsEvaluation",
    "evaluate_retrieval",
    "evaluate_sts",
    "index_rankers",
    "load_pair_scorer",
    "load_rankers",
    "read_run",
    "write_run",
]
