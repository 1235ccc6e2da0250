"""Reads users' own queries and judgements, for an index or together with passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from semsearch.arguments import check_path
from semsearch.datasets.beir import read_texts
from semsearch.datasets.folder import stem
from semsearch.datasets.judging import Qrels, check_queries, judge, relevance, retrieval_set
from semsearch.datasets.records import RetrievalSet
from semsearch.datasets.table import Row, cells_in, find_column, read_rows
from semsearch.datasets.textlines import cells_of, numbered_lines
from semsearch.errors import ColumnNotFoundError, DatasetError

#: A relevance in a file without a header.
_NUMBER = re.compile(r"-?\d+(\.\d*)?")

Columns = Mapping[str, Sequence[str]]

QUERY_COLUMNS = {
    "id": ("queryid", "qid", "id", "topic"),  # "id" may be a row number beside another one
    "text": ("text", "query", "question", "querytext", "claim"),
}
QREL_COLUMNS = {
    "query": ("queryid", "qid", "query", "topic"),
    "document": ("corpusid", "documentid", "docid", "docno", "doc", "document", "id"),
    "relevance": ("relevance", "score", "rel", "grade", "label", "relevant"),
}
PASSAGE_COLUMNS = {
    "query": ("query", "question", "querytext", "claim"),
    "passage": ("passage", "document", "doc", "text", "passagetext", "answer", "abstract"),
    "relevance": ("relevance", "relevant", "rel", "score", "grade", "label"),
}


def read_questions(
    queries: str | Path, qrels: str | Path, has_document: Callable[[str], bool]
) -> RetrievalSet:
    """Read queries and judgements about documents that are stored elsewhere.

    Args:
        queries: JSON lines with ``_id`` and ``text`` (BEIR's), or a table: with a header that
            names QUERY_COLUMNS, or two tab-separated columns without a header; may be gzipped.
        qrels: TREC's ``query 0 document relevance``, separated by white space, or a table with a
            header that names QREL_COLUMNS (BEIR's ``query-id``, ``corpus-id``, ``score``).
        has_document: whether a document with this id exists.

    Raises:
        DatasetError: a file cannot be read, a judged document does not exist, a judged query is
            empty, or no query is judged.
    """
    query_file, qrels_file = check_path("queries", queries), check_path("qrels", qrels)
    texts = _queries(query_file)
    judged = _qrels(qrels_file)
    kept = {query: judged[query] for query in texts if query in judged}
    if not kept:
        raise DatasetError(f"{qrels_file} has no judgement for a query of {query_file}")
    if unknown := [query for query in judged if query not in texts]:
        raise DatasetError(
            f"{qrels_file}: {len(unknown):,} judged queries are not in {query_file}, such as "
            f"'{unknown[0]}'"
        )
    check_queries({query: texts[query] for query in kept}, str(query_file))
    documents = dict.fromkeys(name for grades in kept.values() for name in grades)
    if missing := [name for name in documents if not has_document(name)]:
        raise DatasetError(
            f"{qrels_file}: {len(missing):,} of {len(documents):,} judged documents are not in "
            f"the index, such as '{missing[0]}'; semsearch query --format jsonl shows its ids"
        )
    return RetrievalSet(stem(query_file), {}, {query: texts[query] for query in kept}, kept)


def read_judged_table(
    name: str, file: Path, notify: Callable[[str], None] | None = None
) -> RetrievalSet:
    """Read judged pairs of a query and a passage from a CSV or TSV file, optionally gzipped.

    The header names PASSAGE_COLUMNS. Equal texts are one query or passage, with the ids ``q1``,
    ``q2`` … and ``d1``, ``d2`` … in order of appearance. Relevance is an integer; 0 or less
    means not relevant.

    Args:
        name: the name of the set.
        file: the file.
        notify: called with one line about the columns used.

    Raises:
        DatasetError: the file cannot be read, columns are missing, a query or a passage is empty,
            or a relevance is not an integer.
    """
    rows = read_rows(file)
    header = next(rows)
    columns = _columns(header, PASSAGE_COLUMNS)
    if notify is not None:
        query, passage, grade = (header.cells[column].strip() for column in columns)
        notify(
            f"{file.name}: queries from '{query}', passages from '{passage}', "
            f"relevance from '{grade}'"
        )
    query_ids: dict[str, str] = {}
    document_ids: dict[str, str] = {}
    qrels: Qrels = {}
    for row in rows:
        query, passage, grade = cells_in(row, columns, len(header.cells))
        for what, text in (("query", query), ("passage", passage)):
            if not text.strip():
                raise DatasetError(f"{row.place}: the {what} is empty")
        query_id = query_ids.setdefault(query, f"q{len(query_ids) + 1}")
        document_id = document_ids.setdefault(passage, f"d{len(document_ids) + 1}")
        judge(qrels, query_id, document_id, max(0, relevance(grade, row.place)))
    documents, queries = (
        {name: text for text, name in ids.items()} for ids in (document_ids, query_ids)
    )
    return retrieval_set(name, documents, queries, qrels)


def _queries(file: Path) -> dict[str, str]:
    if file.name.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return read_texts(file)
    texts: dict[str, str] = {}
    rows = read_rows(file, tabs=1)
    first = next(rows)
    if len(first.cells) == 2 and None in _found(first, QUERY_COLUMNS):
        columns, rows = [0, 1], read_rows(file, tabs=1)
    else:
        columns = _columns(first, QUERY_COLUMNS)
    for row in rows:
        name, text = (cell.strip() for cell in cells_in(row, columns, len(first.cells)))
        if name in texts:
            raise DatasetError(f"{row.place}: duplicate query {name!r}")
        texts[name] = text
    return texts


def _qrels(file: Path) -> Qrels:
    qrels: Qrels = {}
    line = next((line for line in numbered_lines(file) if line.text.strip()), None)
    if line is not None and len(cells_of(line)) == 4 and _NUMBER.fullmatch(cells_of(line)[3]):
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
    for row in rows:
        cells = cells_in(row, columns, len(header.cells))
        query, document, grade = (cell.strip() for cell in cells)
        judge(qrels, query, document, relevance(grade, row.place))
    return qrels


def _found(header: Row, names: Columns) -> list[int | None]:
    return [find_column(header.cells, synonyms) for synonyms in names.values()]


def _columns(header: Row, names: Columns) -> list[int]:
    """The positions of all these columns.

    Raises:
        ColumnNotFoundError: the header lacks one, or one column matches two of them.
    """
    found = _found(header, names)
    columns = [column for column in found if column is not None]
    if len(set(columns)) == len(names):
        return columns
    present = ", ".join(cell.strip()[:40] for cell in header.cells)
    missing = "; ".join(
        " or ".join(synonyms)
        for column, synonyms in zip(found, names.values(), strict=True)
        if column is None or found.count(column) > 1
    )
    raise ColumnNotFoundError(
        f"{header.place}: missing columns (columns: {present}; expected: {missing})"
    )
