"""A user's own questions about an index: queries, and which documents answer them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from semsearch.arguments import check_path
from semsearch.datasets.beir import read_texts
from semsearch.datasets.folder import stem
from semsearch.datasets.judging import Qrels, judge, relevance
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.table import Row, find_column, read_rows
from semsearch.datasets.textlines import cells_of, numbered_lines
from semsearch.errors import ColumnNotFoundError, DatasetError
from semsearch.texts import quantity

QUERY_COLUMNS = {
    "id": ("id", "queryid", "qid", "topic"),
    "text": ("text", "query", "question", "querytext", "claim"),
}
QREL_COLUMNS = {
    "query": ("queryid", "qid", "query", "topic"),
    "document": ("corpusid", "documentid", "docid", "docno", "doc", "document", "id"),
    "relevance": ("relevance", "score", "rel", "grade", "label", "relevant"),
}


def read_questions(
    queries: str | Path, qrels: str | Path, has_document: Callable[[str], bool]
) -> RetrievalSet:
    """Queries and judgements about documents that are elsewhere.

    Args:
        queries: JSON lines with ``_id`` and ``text`` (BEIR's), or a table: under a header that
            names QUERY_COLUMNS, or two columns between tabs without a header. ``.gz`` too.
        qrels: TREC's ``query 0 document relevance`` between white space, or a table whose header
            names QREL_COLUMNS (BEIR's ``query-id``, ``corpus-id``, ``score``).
        has_document: whether there is a document of an id.

    Raises:
        DatasetError: a file cannot be read, a judged document is not there, or no query is
            judged.
    """
    query_file, qrels_file = check_path("queries", queries), check_path("qrels", qrels)
    texts = _queries(query_file)
    judged = _qrels(qrels_file)
    kept = {query: judged[query] for query in texts if query in judged}
    if not kept:
        raise DatasetError(f"{qrels_file}: no judgement is of a query in {query_file}")
    if unknown := [query for query in judged if query not in texts]:
        raise DatasetError(
            f"{qrels_file}: {len(unknown):,} judged queries are not in {query_file}, such as "
            f"'{unknown[0]}'"
        )
    documents = dict.fromkeys(name for grades in kept.values() for name in grades)
    if missing := [name for name in documents if not has_document(name)]:
        raise DatasetError(
            f"{qrels_file}: {len(missing):,} of {len(documents):,} judged documents are not in "
            f"the index, such as '{missing[0]}'; which they are called there, semsearch query "
            "--format jsonl tells"
        )
    return RetrievalSet(stem(query_file), {}, {query: texts[query] for query in kept}, kept)


def _queries(file: Path) -> dict[str, str]:
    if file.name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return read_texts(file)
    texts: dict[str, str] = {}
    rows = read_rows(file)
    first = next(rows)
    columns = _columns(first, QUERY_COLUMNS)
    if columns is None:
        if len(first.cells) != 2:
            raise _unknown_columns(first, QUERY_COLUMNS)
        columns, rows = [0, 1], read_rows(file)
    for row in rows:
        name, text = _cells(row, columns)
        if name in texts:
            raise DatasetError(f"{row.place}: the query {name!r} is there already")
        texts[name] = text
    return texts


def _qrels(file: Path) -> Qrels:
    qrels: Qrels = {}
    line = next((line for line in numbered_lines(file) if line.text.strip()), None)
    if line is not None and len(cells_of(line)) == 4 and cells_of(line)[3].lstrip("-").isdigit():
        for line in numbered_lines(file):
            if line.text.strip():
                cells = cells_of(line)
                if len(cells) != 4:
                    raise DatasetError(f"{line.place}: not 'query 0 document relevance'")
                judge(qrels, cells[0], cells[2], relevance(cells[3], line.place))
        return qrels
    rows = read_rows(file)
    header = next(rows)
    columns = _columns(header, QREL_COLUMNS)
    if columns is None:
        raise _unknown_columns(header, QREL_COLUMNS)
    for row in rows:
        query, document, grade = _cells(row, columns)
        judge(qrels, query, document, relevance(grade, row.place))
    return qrels


def _columns(header: Row, names: dict[str, tuple[str, ...]]) -> list[int] | None:
    """Where the columns stand, if the header names them all."""
    found = [find_column(header.cells, those) for those in names.values()]
    columns = [column for column in found if column is not None]
    return columns if len(set(columns)) == len(names) else None


def _cells(row: Row, columns: Sequence[int]) -> list[str]:
    if len(row.cells) <= max(columns):
        raise DatasetError(
            f"{row.place}: {quantity(len(row.cells), 'column')}; {max(columns) + 1} needed"
        )
    return [row.cells[column].strip() for column in columns]


def _unknown_columns(header: Row, names: dict[str, tuple[str, ...]]) -> DatasetError:
    there = ", ".join(cell.strip()[:40] for cell in header.cells)
    looked_for = "; ".join(" or ".join(those) for those in names.values())
    return ColumnNotFoundError(
        f"{header.place}: not all columns are there (columns: {there}; looked for: {looked_for})"
    )
