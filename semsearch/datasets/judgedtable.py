"""Tables of judged pairs: a query, a passage, and how relevant the one is to the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from semsearch.datasets.judging import Qrels, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.table import find_column, read_rows
from semsearch.errors import ColumnNotFoundError, DatasetError
from semsearch.texts import quantity

COLUMNS = {
    "query": ("query", "question", "querytext", "claim"),
    "passage": ("passage", "document", "doc", "text", "passagetext", "answer", "abstract"),
    "relevance": ("relevance", "relevant", "rel", "score", "grade", "label"),
}


def read_judged_table(
    name: str, file: Path, notify: Callable[[str], None] | None = None
) -> RetrievalSet:
    """A retrieval set out of a CSV or TSV file, ``.gz`` too, whose header names COLUMNS.

    Equal texts are one query or passage. They are called ``q1``, ``q2`` … and ``d1``, ``d2`` … as
    they first come. Relevance is a whole number, 0 or less for not relevant.

    Args:
        name: what the set is called.
        file: what to read.
        notify: is called with one line: which columns are used.

    Raises:
        DatasetError: the file cannot be read, has other columns, or a relevance is no number.
    """
    rows = read_rows(file)
    header = next(rows)
    found = {what: find_column(header.cells, names) for what, names in COLUMNS.items()}
    columns = [column for column in found.values() if column is not None]
    if len(columns) != len(COLUMNS):
        looked_for = "; ".join(
            " or ".join(COLUMNS[what]) for what in COLUMNS if found[what] is None
        )
        columns_there = ", ".join(cell.strip()[:40] for cell in header.cells)
        raise ColumnNotFoundError(
            f"{header.place}: not all columns of judged passages (columns: {columns_there}; "
            f"looked for: {looked_for})"
        )
    if notify is not None:
        query, passage, grade = (header.cells[column].strip() for column in columns)
        taken = f"queries from '{query}', passages from '{passage}', relevance from '{grade}'"
        notify(f"{file.name}: {taken}")
    query_ids: dict[str, str] = {}
    document_ids: dict[str, str] = {}
    qrels: Qrels = {}
    for row in rows:
        if len(row.cells) <= max(columns):
            raise DatasetError(
                f"{row.place}: {quantity(len(row.cells), 'column')}; {max(columns) + 1} needed"
            )
        query, passage, grade = (row.cells[column] for column in columns)
        query_id = query_ids.setdefault(query, f"q{len(query_ids) + 1}")
        document_id = document_ids.setdefault(passage, f"d{len(document_ids) + 1}")
        judge(qrels, query_id, document_id, max(0, relevance(grade, row.place)))
    documents, queries = (
        {name: text for text, name in ids.items()} for ids in (document_ids, query_ids)
    )
    return retrieval_set(name, documents, queries, qrels)
