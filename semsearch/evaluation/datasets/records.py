"""Data types of data sets, and retrieval sets from documents, queries and judgements."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from semsearch.errors import DatasetError, quantity

logger = logging.getLogger(__name__)

#: Relevance by query id and document id.
Qrels = dict[str, dict[str, int]]


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
    qrels: Qrels  #: 0 is not relevant
    split: str = "test"  #: of the judgements


def relevance(text: str, place: str) -> int:
    """A judgement as an integer; ``1.0`` is accepted.

    Raises:
        DatasetError: it is not an integer.
    """
    try:
        number = float(text)
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise DatasetError(f"{place}: the relevance is not an integer: {text.strip()[:40]!r}")


def judge(qrels: Qrels, query: str, document: str, grade: int) -> None:
    """Record a judgement; if a document has several, the highest counts."""
    grades = qrels.setdefault(query, {})
    grades[document] = max(grade, grades.get(document, grade))


def check_queries(queries: Mapping[str, str], source: str) -> None:
    """Raise DatasetError if a query is blank."""
    for query, text in queries.items():
        if not text.strip():
            raise DatasetError(f"{source}: the query '{query}' is empty")


def retrieval_set(
    name: str,
    documents: dict[str, str],
    queries: Mapping[str, str],
    qrels: Qrels,
    split: str = "test",
) -> RetrievalSet:
    """A set of the queries that have judgements.

    Judgements of unknown documents or queries are dropped; a warning with their number and the
    first one is logged. So is one of relevant documents that are empty.

    Raises:
        DatasetError: no judgement refers to a known query and document, or a judged query is empty.
    """
    judged = [(query, document) for query, grades in qrels.items() for document in grades]
    unknown = [one for one in judged if one[0] not in queries or one[1] not in documents]
    if len(unknown) == len(judged):
        raise DatasetError(f"{name}: no judgement refers to its queries and documents")
    if unknown:
        logger.warning(
            "%s: %d judgements of unknown documents or queries are left out, such as query '%s', "
            "document '%s'",
            name,
            len(unknown),
            *unknown[0],
        )
    kept: Qrels = {}
    for query in queries:
        grades = qrels.get(query, {})
        if known := {one: grade for one, grade in grades.items() if one in documents}:
            kept[query] = known
    relevant = (one for grades in kept.values() for one, grade in grades.items() if grade > 0)
    if blank := [one for one in dict.fromkeys(relevant) if not documents[one].strip()]:
        logger.warning(
            "%s: %s without text, which no system can find, such as '%s'",
            name,
            quantity(len(blank), "relevant document"),
            blank[0],
        )
    asked = {query: queries[query] for query in kept}
    check_queries(asked, name)
    return RetrievalSet(name, documents, asked, kept, split)
