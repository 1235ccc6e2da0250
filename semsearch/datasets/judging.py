"""Retrieval sets out of documents, queries and judgements; what does not fit is reported."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from semsearch.datasets.records import RetrievalSet
from semsearch.errors import DatasetError

logger = logging.getLogger(__name__)

#: Relevance by query id and document id.
Qrels = dict[str, dict[str, int]]


def relevance(text: str, place: str) -> int:
    """The whole number that a judgement is; ``1.0`` is one, too.

    Raises:
        DatasetError: it is something else.
    """
    try:
        number = float(text)
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise DatasetError(f"{place}: the relevance is no whole number: {text.strip()[:40]!r}")


def judge(qrels: Qrels, query: str, document: str, grade: int) -> None:
    """Note a judgement; of two about one document the higher counts."""
    grades = qrels.setdefault(query, {})
    grades[document] = max(grade, grades.get(document, grade))


def retrieval_set(
    name: str,
    documents: dict[str, str],
    queries: Mapping[str, str],
    qrels: Qrels,
    split: str = "test",
) -> RetrievalSet:
    """A set of those queries that have judgements.

    A judgement of a document or query that the set does not have can neither be met nor missed.
    It is left out, and how many there are is logged as a warning.

    Raises:
        DatasetError: no judgement is about the documents and queries that there are.
    """
    kept: Qrels = {}
    unknown = 0
    for query, grades in qrels.items():
        known = {document: grade for document, grade in grades.items() if document in documents}
        if query not in queries:
            known = {}
        if known:
            kept[query] = known
        unknown += len(grades) - len(known)
    if not kept:
        raise DatasetError(f"{name}: no judgement is about its documents and queries")
    if unknown:
        logger.warning(
            "%s: %d judgements name documents or queries that it does not have; left out",
            name,
            unknown,
        )
    judged = {query: text for query, text in queries.items() if query in kept}
    return RetrievalSet(name, documents, judged, {query: kept[query] for query in judged}, split)
