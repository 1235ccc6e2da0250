"""Builds retrieval sets from documents, queries and judgements."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from semsearch.datasets.records import RetrievalSet
from semsearch.errors import DatasetError, quantity

logger = logging.getLogger(__name__)

#: Relevance by query id and document id.
Qrels = dict[str, dict[str, int]]

#: The highest relevance. trec_eval allocates memory for each grade, and overflows at some.
MAX_RELEVANCE = 1000


def relevance(text: str, place: str) -> int:
    """A judgement as an integer; ``1.0`` is accepted.

    Raises:
        DatasetError: it is not an integer, or above MAX_RELEVANCE.
    """
    shown = repr(text.strip()[:40])
    try:
        number = float(text)
        if number != int(number):
            raise ValueError
    except (ValueError, OverflowError):
        raise DatasetError(f"{place}: the relevance is not an integer: {shown}") from None
    if number > MAX_RELEVANCE:
        raise DatasetError(f"{place}: the relevance is above {MAX_RELEVANCE:,}: {shown}")
    return int(number)


def judge(qrels: Qrels, query: str, document: str, grade: int) -> None:
    """Record a judgement; if a document has several, the highest counts."""
    grades = qrels.setdefault(query, {})
    grades[document] = max(grade, grades.get(document, grade))


def check_queries(queries: Mapping[str, str], source: str) -> None:
    """Check that no query is blank.

    Raises:
        DatasetError: one is.
    """
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
    kept: Qrels = {}
    unknown: list[tuple[str, str]] = []
    for query, grades in qrels.items():
        known = {document: grade for document, grade in grades.items() if document in documents}
        if query not in queries:
            known = {}
        if known:
            kept[query] = known
        unknown += [(query, document) for document in grades if document not in known]
    if not kept:
        raise DatasetError(f"{name}: no judgement refers to its queries and documents")
    if unknown:
        logger.warning(
            "%s: %d judgements of unknown documents or queries are left out, such as query '%s', "
            "document '%s'",
            name,
            len(unknown),
            *unknown[0],
        )
    relevant = (one for grades in kept.values() for one, grade in grades.items() if grade > 0)
    if blank := [one for one in dict.fromkeys(relevant) if not documents[one].strip()]:
        logger.warning(
            "%s: %s without text, which no system can find, such as '%s'",
            name,
            quantity(len(blank), "relevant document"),
            blank[0],
        )
    judged = {query: text for query, text in queries.items() if query in kept}
    check_queries(judged, name)
    return RetrievalSet(name, documents, judged, {query: kept[query] for query in judged}, split)
