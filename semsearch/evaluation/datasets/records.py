"""Data types of data sets."""

from __future__ import annotations

from typing import NamedTuple


class ScoredPair(NamedTuple):
    """Two sentences and their human similarity score."""

    left: str
    right: str
    gold: float


class StsSet(NamedTuple):
    """Scored pairs, grouped by their published subsets."""

    name: str  #: ``stsbenchmark``, ``sts12`` to ``sts16``, ``sick``, or the stem of a file
    split: str  #: ``train``, ``dev``, ``test``, ``trial`` or ``all``
    subsets: dict[str, list[ScoredPair]]  #: several for the SemEval years, else one
    unscored: int  #: the number of pairs left out because they have no gold score

    @property
    def pairs(self) -> list[ScoredPair]:
        """The pairs of all subsets, in order."""
        return [pair for subset in self.subsets.values() for pair in subset]


class LabelledPair(NamedTuple):
    """Two sentences and the human label of their relation (entailment, paraphrase or not)."""

    left: str
    right: str
    label: str


class RetrievalSet(NamedTuple):
    """Documents, queries and relevance judgements."""

    name: str  #: of the set, or the stem of its file or folder
    documents: dict[str, str]  #: text by id
    queries: dict[str, str]  #: text by id; each has judgements
    qrels: dict[str, dict[str, int]]  #: relevance by query id and document id; 0 is not relevant
    split: str = "test"  #: of the judgements
