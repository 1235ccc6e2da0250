"""Reads users' own queries and judgements, for an index or together with passages."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from semsearch.corpus import Table, good_rows, open_table
from semsearch.corpus.roles import (
    DOCUMENT_ID,
    PASSAGE,
    QUERY,
    QUERY_ID,
    RELEVANCE,
    find_column,
    listed,
    quoted_names,
)
from semsearch.errors import ColumnNotFoundError, DatasetError, check_path
from semsearch.evaluation.datasets.records import (
    Qrels,
    RetrievalSet,
    check_queries,
    judge,
    relevance,
)
from semsearch.evaluation.datasets.registry import stem
from semsearch.evaluation.datasets.textlines import cell, numbered_lines

#: A relevance in a file without a header.
_NUMBER = re.compile(r"-?\d+(\.\d*)?")


def read_questions(
    queries: str | Path, qrels: str | Path, has_document: Callable[[str], bool]
) -> RetrievalSet:
    """Read queries and judgements about documents that are stored elsewhere.

    Args:
        queries: JSON lines with ``_id`` and ``text`` (BEIR's), or another table with an id and a
            text, or two columns without a header; may be gzipped.
        qrels: TREC's ``query 0 document relevance``, separated by white space, or a table with a
            header (BEIR's ``query-id``, ``corpus-id``, ``score``, or others of `corpus.roles`).
        has_document: whether a document with this id exists.

    Raises:
        CorpusError: a file cannot be read.
        DatasetError: a judged document does not exist, a judged query is empty, or no query is
            judged.
    """
    query_file, qrels_file = check_path("queries", queries), check_path("qrels", qrels)
    texts = read_queries(query_file)
    judged = read_qrels(qrels_file)
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


def read_judged_table(name: str, file: Path, notify: Callable[[str], None]) -> RetrievalSet:
    """Read judged pairs of a query and a passage from a table.

    Equal texts are one query or passage, with the ids ``q1``, ``q2`` … and ``d1``, ``d2`` … in
    order of appearance. Relevance is an integer; 0 or less means not relevant.

    Args:
        name: the name of the set.
        file: the file.
        notify: called with one line about the columns used.

    Raises:
        CorpusError: the file cannot be read, or columns are missing.
        DatasetError: a query or a passage is empty, or a relevance is not an integer.
    """
    query_ids: dict[str, str] = {}
    document_ids: dict[str, str] = {}
    qrels: Qrels = {}
    with open_table(file) as table:
        columns = _columns(table, QUERY, PASSAGE, RELEVANCE)
        query, passage, grade = (quoted_names([column]) for column in columns)
        notify(
            f"{file.name}: queries from {query}, passages from {passage}, relevance from {grade}"
        )
        for row in good_rows(table):
            query, passage, grade = (cell(row, column) for column in columns)
            if not (query.strip() and passage.strip()):
                raise DatasetError(f"{row.source}: the query or the passage is empty")
            query_id = query_ids.setdefault(query, f"q{len(query_ids) + 1}")
            document_id = document_ids.setdefault(passage, f"d{len(document_ids) + 1}")
            judge(qrels, query_id, document_id, max(0, relevance(grade, row.source)))
    documents, queries = (
        {name: text for text, name in ids.items()} for ids in (document_ids, query_ids)
    )
    return RetrievalSet(name, documents, queries, qrels)


def read_queries(file: Path) -> dict[str, str]:
    """The texts of queries by id.

    Raises:
        CorpusError: the file cannot be read, or columns are missing.
        DatasetError: an id occurs twice.
    """
    names = QUERY_ID, ("text", *QUERY)
    with open_table(file) as table:
        is_bare = len(table.columns) == 2 and None in (find_column(table.columns, n) for n in names)
    texts: dict[str, str] = {}
    with open_table(file, header=False if is_bare else None) as table:
        columns = table.columns if is_bare else _columns(table, *names)
        for row in good_rows(table):
            name, text = (cell(row, column).strip() for column in columns)
            if name in texts:
                raise DatasetError(f"{row.source}: duplicate query {name!r}")
            texts[name] = text
    return texts


def read_qrels(file: Path) -> Qrels:
    """Judgements in the format of TREC, or of a table.

    Raises:
        CorpusError: the file cannot be read, or columns are missing.
        DatasetError: a relevance is not an integer.
    """
    qrels: Qrels = {}
    lines = [line for line in numbered_lines(file) if line.text.strip()]
    first = lines[0].text.split() if lines else []
    if len(first) == 4 and _NUMBER.fullmatch(first[3]):
        for line in lines:
            cells = line.text.split()
            if len(cells) != 4:
                raise DatasetError(f"{line.place}: not 'query 0 document relevance'")
            judge(qrels, cells[0], cells[2], relevance(cells[3], line.place))
        return qrels
    with open_table(file) as table:
        columns = _columns(table, ("queryid", "qid", "query", "topic"), DOCUMENT_ID, RELEVANCE)
        for row in good_rows(table):
            query, document, grade = (cell(row, column).strip() for column in columns)
            judge(qrels, query, document, relevance(grade, row.source))
    return qrels


def _columns(table: Table, *names: Sequence[str]) -> list[str]:
    """A column for each of these groups of names.

    Raises:
        ColumnNotFoundError: the table lacks one, or one column matches two of them.
    """
    columns = [find_column(table.columns, synonyms) for synonyms in names]
    found = [column for column in columns if column is not None]
    if len(set(found)) < len(names):
        expected = "; ".join(" or ".join(synonyms) for synonyms in names)
        raise ColumnNotFoundError(
            f"{table.name}: missing columns (columns: {listed(table.columns)}; expected: "
            f"{expected})"
        )
    return found
