"""One committed state of the database: documents, spaces, fields, and search."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    select,
    table,
    true,
)

from semsearch.arguments import MAX_WHOLE_NUMBER
from semsearch.protocols import Matrix
from semsearch.records import Chunk, Document, metadata_name
from semsearch.stores.local import fields as kinds
from semsearch.stores.local.fields import indexed
from semsearch.stores.local.restrictions import RestrictionMemory, Restrictions
from semsearch.stores.local.schema import (
    FORMAT_VERSION,
    DamageError,
    StoredFloat,
    checked_columns,
    chunks,
    documents,
    get_corpora,
    get_index_type,
    get_language,
    get_setting,
    read_rows,
    stored_integer,
    stored_json,
    stored_text,
    stored_text_or_null,
    texts,
    values,
    values_later,
    vectors,
)
from semsearch.stores.local.spaces import (
    SpaceView,
    all_spaces,
    damaged,
    from_bytes,
    snapshot_record,
    stored_matrix,
    vector_blocks,
)
from semsearch.stores.protocol import (
    EVERYTHING,
    NO_RESTRICTION,
    Candidate,
    FoundPassage,
    Kind,
    NewPassage,
    Passages,
    Restriction,
    Seen,
    Selection,
    SnapshotInfo,
    Space,
    StoredDocument,
    StoreInfo,
    TextVectors,
    check_searchable,
)
from semsearch.vector_indexes import IndexType
from semsearch.vector_indexes.flat import Ids

if TYPE_CHECKING:
    from semsearch.filters import Condition, Value

#: Below these shares, the documents that match a filter are listed before the search; the second
#: share applies if indexes alone find them, so that no document is read.
LISTED_SHARE, LISTED_SHARE_BY_INDEX = 0.02, 0.2
#: If matching documents are rarer among the nearest than overall, they are listed once the expected
#: number of matches exceeds the wanted number by this factor.
MAX_LEFT_OUT = 50

#: By how many standard deviations the expected number of matches exceeds the wanted one: if matches
#: are spread at random, fewer than one query in a hundred has to be searched again.
SPARE_DEVIATIONS = 3

#: SQLite accepts expressions up to 1,000 operators deep; further phrases are words only.
MAX_PHRASES = 100

#: Marks matched words.
MARK = "\x02\x1f\x03"

_DOCUMENTS = (
    select(documents, texts.c.text)
    .join(texts, texts.c.document_id == documents.c.document_id)
    .order_by(documents.c.document_id)
)

# Built once, because SQLAlchemy takes longer to build a statement than to run it.
_MATCHING_OWNERS = (
    select(chunks.c.chunk_id, chunks.c.document_id)
    .join(documents, documents.c.document_id == chunks.c.document_id)
    .where(chunks.c.chunk_id.in_(values_later("chunk_ids")))
)
_OWNERS = """
SELECT chunk_id, document_id FROM chunks WHERE chunk_id IN (SELECT value FROM json_each(?))
"""
_OWNERS_CHECKS = (stored_integer, stored_integer)
_PASSAGES = """
SELECT chunk_id, external_id, start, "end", text, metadata, title
FROM chunks JOIN documents USING (document_id)
WHERE chunk_id IN (SELECT value FROM json_each(?))
"""
_PASSAGES_CHECKS = (
    *(stored_integer, stored_text, stored_integer, stored_integer, stored_text),
    *(stored_text, stored_text_or_null),
)

_words = table("chunks_fts")
_CHUNK_ID = literal_column("rowid", Integer).label("chunk_id")


def _matches(parameter: str) -> ColumnElement[bool]:
    return literal_column("chunks_fts").bool_op("MATCH")(bindparam(parameter, type_=Text))


_MATCHED = (
    select(
        _CHUNK_ID,
        literal_column(f"highlight(chunks_fts, 0, '{MARK}', '{MARK}')", Text).label("marked"),
    )
    .select_from(_words)
    .where(_matches("match"), literal_column("rowid", Integer).in_(values_later("chunk_ids")))
)
_MARKED = re.compile(f"{MARK}(.*?){MARK}", re.DOTALL)


@cache
def _by_words(phrases: int = 0, *, among: bool = False) -> Select[int, float]:
    """The best passages by their words and by this number of phrases, `among` some chunks or all.

    Cached, because SQLAlchemy takes longer to build a statement than to run it.
    """
    score: ColumnElement[float] = -literal_column("rank", StoredFloat)
    for number in range(phrases):
        held = select(_CHUNK_ID).select_from(_words).where(_matches(f"phrase{number}"))
        score += bindparam("best") * literal_column("rowid").in_(held)
    # With this order SQLite keeps the `n` best; ordered by rank alone, FTS5 would sort all rows.
    ranked = score.label("score")
    query = select(_CHUNK_ID, ranked).select_from(_words).where(_matches("match"))
    if among:
        # The sign keeps SQLite from searching the words once for each chunk.
        query = query.where(literal_column("+rowid", Integer).in_(values_later("chunk_ids")))
    return query.order_by(ranked.desc(), _CHUNK_ID).limit(bindparam("n"))


class LocalState:
    """The state that a transaction reads; see `semsearch.stores.protocol.StoreState`.

    Args:
        connection: in a transaction.
        directory: the directory of the snapshots.
        view_of: returns the vectors of a space at a revision.
        memory: a cache about restrictions, shared with later states.
    """

    def __init__(
        self,
        connection: Connection,
        directory: Path,
        view_of: Callable[[Connection, Space, int], SpaceView],
        memory: RestrictionMemory,
    ) -> None:
        self.connection = connection
        self._directory = directory
        self._view_of = view_of
        self._memory = memory

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a passage."""
        max_tokens = get_setting(self.connection, "chunk_max_tokens")
        if max_tokens < 1:
            raise DamageError(f"chunk_max_tokens must be at least 1, not {max_tokens}")
        return max_tokens

    @property
    def index_type(self) -> IndexType:
        """The requested type of vector index."""
        return get_index_type(self.connection).supported()

    @property
    def unfinished_sync(self) -> int | None:
        """The number of documents before a sync that has not finished."""
        documents = get_setting(self.connection, "unfinished_sync", -1)
        return None if documents < 0 else documents

    @property
    def corpora(self) -> dict[str, dict[str, Any]]:
        """How corpora were read."""
        return get_corpora(self.connection)

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return all_spaces(self.connection)

    def info(self) -> StoreInfo:
        """The contents of the store."""
        spaces = self.spaces()
        records = {space.name: snapshot_record(self.connection, space) for space in spaces}
        files: dict[str, int] = {}
        for file in sorted(self._directory.iterdir()):
            with suppress(FileNotFoundError):  # a writer has just replaced it
                if file.is_file():
                    files[file.name] = file.stat().st_size
        return StoreInfo(
            format=FORMAT_VERSION,
            documents=self.count(),
            chunks=self.connection.scalar(select(func.count()).select_from(chunks)) or 0,
            fields=kinds.all_fields(self.connection),
            spaces=spaces,
            snapshots={
                name: SnapshotInfo(record.file, record.kind, record.vectors, record.recall)
                for name, record in records.items()
                if record
            },
            files=files,
            language=get_language(self.connection),
            indexed_fields=sorted(map(metadata_name, indexed(self.connection))),
        )

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""
        query = select(func.count()).select_from(documents).where(self.selected(selection))
        return self.connection.scalar(query) or 0

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of all documents, or of selected ones, in the order of addition."""
        query = select(documents.c.external_id).where(self.selected(selection))
        query = query.order_by(documents.c.document_id).limit(limit)
        return list(self.connection.scalars(query))

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        found = self._documents(_DOCUMENTS.where(documents.c.external_id.in_(values(ids))))
        return {str(document.id): document for document in found.values()}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of addition."""
        return self._documents(_DOCUMENTS.where(documents.c.document_id > last).limit(limit))

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The stored records of the documents with these ids."""
        rows = self.connection.execute(
            select(documents).where(documents.c.external_id.in_(values(ids)))
        )
        return {
            row.external_id: StoredDocument(row.document_id, row.title, row.metadata, row.text_hash)
            for row in rows
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""
        rows = self.connection.execute(
            select(
                documents.c.external_id,
                chunks.c.start,
                chunks.c.end,
                chunks.c.text,
                chunks.c.text_hash,
            )
            .join(chunks, chunks.c.document_id == documents.c.document_id)
            .where(documents.c.external_id.in_(values(ids)))
            .order_by(chunks.c.chunk_id)
        )
        found: dict[str, list[NewPassage]] = {}
        for external_id, *passage in rows:
            found.setdefault(external_id, []).append(NewPassage(*passage))
        return found

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The undamaged stored vectors of texts, whatever their documents."""
        of_text = chunks.c.text_hash.in_(values(hashes))
        # Of a text that many passages share, the vector of the last one.
        last = select(func.max(chunks.c.chunk_id)).where(of_text).group_by(chunks.c.text_hash)
        rows = self.connection.execute(
            select(vectors.c.space_id, chunks.c.text_hash, vectors.c.vector)
            .join(chunks, chunks.c.chunk_id == vectors.c.chunk_id)
            .where(chunks.c.chunk_id.in_(last))
        )
        by_space: dict[int, dict[str, bytes]] = {}
        for space_id, digest, vector in rows:
            by_space.setdefault(space_id, {})[digest] = vector
        found: TextVectors = {}
        for space in self.spaces() if by_space else []:
            stored = by_space.get(space.id, {})
            bad = set(damaged(space, list(stored.values())))
            sound = [digest for place, digest in enumerate(stored) if place not in bad]
            matrix = stored_matrix(space, [stored[digest] for digest in sound])
            found |= {(space.id, digest): row for digest, row in zip(sound, matrix, strict=True)}
        return found

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""
        check_searchable(space, self.spaces())
        query = (
            select(chunks.c.chunk_id, chunks.c.document_id, documents.c.external_id, chunks.c.text)
            .join(documents, documents.c.document_id == chunks.c.document_id)
            .order_by(chunks.c.chunk_id)
        )
        if condition is not None:
            query = query.where(self._restrictions.all_that_meet(condition))
        rows = self.connection.execute(query).all()
        chunk_ids = numpy.array([row.chunk_id for row in rows], numpy.int64)
        matrix = numpy.empty((len(rows), space.dimension), numpy.float32)
        filled = 0
        for ids, block in vector_blocks(self.connection, space):
            if condition is not None:
                wanted = numpy.isin(ids, chunk_ids)
                ids, block = ids[wanted], block[wanted]
            if not numpy.array_equal(ids, chunk_ids[filled : filled + len(ids)]):
                break
            matrix[filled : filled + len(ids)] = block
            filled += len(ids)
        if filled != len(rows):
            raise DamageError("the passages do not match their vectors")
        return Passages(
            [row.external_id for row in rows],
            numpy.array([row.document_id for row in rows], numpy.int64),
            chunk_ids,
            [row.text for row in rows],
            matrix,
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""
        check_searchable(space, self.spaces())
        rows = self.connection.execute(
            select(documents.c.external_id, vectors.c.vector)
            .join_from(documents, chunks, chunks.c.document_id == documents.c.document_id)
            .join(vectors, vectors.c.chunk_id == chunks.c.chunk_id)
            .where(documents.c.external_id.in_(values(ids)), vectors.c.space_id == space.id)
            .order_by(chunks.c.chunk_id)
        )
        stored: dict[str, list[bytes]] = {}
        for external_id, vector in rows:
            stored.setdefault(external_id, []).append(vector)
        return {name: from_bytes(space, found) for name, found in stored.items()}

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""
        has_vector = exists().where(
            vectors.c.chunk_id == chunks.c.chunk_id, vectors.c.space_id == space.id
        )
        rows = self.connection.execute(
            select(chunks.c.chunk_id, chunks.c.text, documents.c.external_id)
            .join(documents, documents.c.document_id == chunks.c.document_id)
            .where(chunks.c.chunk_id > after, ~has_vector)
            .order_by(chunks.c.chunk_id)
            .limit(limit)
        )
        return [tuple(row) for row in rows]

    def selected(self, selection: Selection) -> ColumnElement[bool]:
        """The SQL condition of a selection."""
        clauses: list[ColumnElement[bool]] = [true()]
        if selection.ids is not None:
            clauses.append(documents.c.external_id.in_(values(selection.ids)))
        if selection.condition is not None:
            clauses.append(self._restrictions.all_that_meet(selection.condition))
        if selection.unseen:
            from semsearch.stores.local.run import was_seen

            clauses.append(~was_seen(documents.c.external_id))
        return and_(*clauses)

    def prepare(self, space: Space) -> None:
        """Load the vectors of a space."""
        self._view(space)

    def search_vectors(
        self,
        space: Space,
        queries: Matrix,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[list[Candidate]]:
        """The `k` best passages of each query (fewer only when fewer match), best first.

        If many documents match the restriction, more candidates are searched and others dropped;
        if few do, their chunks are listed first, and only these are searched.
        """
        view = self._view(space)
        share = self._listed_share(restriction, self._least_share(restriction))
        is_listed = not share
        allowed = self._restrictions.chunks(restriction) if is_listed else None
        clause = None if is_listed else self._restrictions.clause(restriction)
        wanted = view.reach(k)
        found: list[list[Candidate]] = [[] for _ in queries]
        open_queries = numpy.arange(len(queries))
        most = wanted * MAX_LEFT_OUT
        reach = len(view) if allowed is None else len(allowed)
        n = min(wanted if is_listed else _depth(wanted, share), reach)
        while len(open_queries) and n:
            scores, ids = view.search(queries[open_queries], n, allowed)
            owners = self._owners(numpy.unique(ids), clause)
            for query, row_scores, row_ids in zip(open_queries, scores, ids, strict=True):
                scored = zip(row_scores[:n].tolist(), row_ids[:n].tolist(), strict=True)
                found[query] = _best(scored, owners, k, per_document)
            if n == reach:
                break
            # Further chunks of a document, deleted ones, or ones that do not match the condition
            # took up places: search further.
            open_queries = numpy.array([query for query in open_queries if len(found[query]) < k])
            n = min(4 * n, reach)
            if len(open_queries) and not is_listed and clause is not None and n * share > most:
                is_listed, clause = True, None
                allowed = self._restrictions.chunks(restriction)
                reach = len(allowed)
                n = min(wanted, reach)
        return found

    def plan(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        plan = self._view(space).plan
        if restriction == NO_RESTRICTION:
            return plan
        share = self._listed_share(restriction, self._least_share(restriction))
        if share:
            return f"{plan}; about {share:.0%} of the documents match the filter, checked after"
        from semsearch.texts import quantity

        count = len(self._restrictions.chunks(restriction))
        return f"{plan}; restricted to {quantity(count, 'passage')}, searched alone"

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[Candidate]:
        """The `k` best passages by BM25 over their words, best first.

        The score is SQLite's `bm25` with the opposite sign, so that higher is better (k1 = 1.2,
        b = 0.75; Robertson & Zaragoza 2009). A phrase is one more word, and each phrase in a
        passage adds the best score of any passage, so that passages with more phrases come first.
        """
        analyser = self._restrictions.analyser
        match = analyser.match_expression(text, phrases)
        if match is None:
            return []
        terms = [term for term in map(analyser.phrase_term, phrases) if term][:MAX_PHRASES]
        parameters: dict[str, Any] = {"match": match}
        if terms:
            best = self.connection.execute(_by_words(), parameters | {"n": 1}).first()
            parameters |= {"best": best.score if best else 0}
            parameters |= {f"phrase{number}": term for number, term in enumerate(terms)}
        share = self._listed_share(restriction, LISTED_SHARE)
        query = _by_words(len(terms), among=not share)
        if share:
            clause = self._restrictions.clause(restriction)
        else:
            clause, share = None, 1
            parameters["chunk_ids"] = self._restrictions.chunks(restriction).tolist()
        found: list[Candidate] = []
        n = min(math.ceil((2 * k + 8) / share), MAX_WHOLE_NUMBER)
        while True:
            rows = self.connection.execute(query, parameters | {"n": n}).all()
            owners = self._owners(numpy.array([row.chunk_id for row in rows], numpy.int64), clause)
            scored = ((row.score, row.chunk_id) for row in rows)
            found = _best(scored, owners, k, per_document)
            if len(found) == k or len(rows) < n:
                return found
            n = min(4 * n, MAX_WHOLE_NUMBER)

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of chunks, as BM25 reads them, that occur in a text."""
        match = self._restrictions.analyser.match_expression(text)
        if match is None:
            return {}
        rows = self.connection.execute(_MATCHED, {"match": match, "chunk_ids": list(chunk_ids)})
        return {
            row.chunk_id: list(dict.fromkeys(_MARKED.findall(row.marked.lower()))) for row in rows
        }

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""
        rows = self.connection.execute(
            select(vectors.c.chunk_id, vectors.c.vector).where(
                vectors.c.space_id == space.id, vectors.c.chunk_id.in_(values(chunk_ids))
            )
        )
        stored = {row.chunk_id: row.vector for row in rows}
        if not stored.keys() >= set(chunk_ids):
            raise DamageError("a passage has no vector")
        return from_bytes(space, [stored[chunk_id] for chunk_id in chunk_ids])

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids."""
        with read_rows(self.connection, _PASSAGES, [json.dumps(list(chunk_ids))]) as cursor:
            rows = cursor.fetchall()
        if rows:
            checked_columns(rows, *_PASSAGES_CHECKS)
        found = {
            row[0]: FoundPassage(Chunk(*row[:5]), stored_json(row[5], dict), row[6]) for row in rows
        }
        for chunk_id in chunk_ids:
            if chunk_id not in found and not missing_ok:
                raise DamageError(f"passage {chunk_id} has no document")
        return found

    def check(self, condition: Condition) -> None:
        """Refuse a condition that SQLite cannot run."""
        self._restrictions.check(condition)

    def field_names(self) -> list[str]:
        """The names of the metadata fields of documents, sorted."""
        return kinds.field_names(self.connection)

    def kinds_of(self, names: Iterable[str]) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, without unknown fields."""
        return kinds.kinds_of(self.connection, names)

    def example(self, field: str, of_kinds: Iterable[Kind]) -> Value | None:
        """A value of a field of one of these kinds."""
        return kinds.example(self.connection, field, of_kinds)

    def dates(self, field: str) -> list[str]:
        """Dates and times of a field, from documents spread over the index."""
        return self._restrictions.dates(field)

    def matches(self, condition: Condition) -> bool:
        """Whether any document matches a condition."""
        clause = self._restrictions.all_that_meet(condition)
        query = select(documents.c.document_id).where(clause).limit(1)
        return self.connection.scalar(query) is not None

    def neighbours(self, field: str, value: Value) -> list[Value]:
        """The nearest values of a field below and above a value of the same kind."""
        return kinds.neighbours(self.connection, field, value)

    def texts_of(self, field: str, max_characters: int) -> list[str]:
        """Distinct texts of a field, from a sample of documents."""
        return kinds.texts_of(self.connection, field, max_characters)

    def begin_run(self) -> None:
        """Start a run: no document has been seen."""
        from semsearch.stores.local.run import begin

        begin(self.connection)

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has seen."""
        from semsearch.stores.local.run import seen

        return seen(self.connection, ids)

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Mark documents as seen."""
        from semsearch.stores.local.run import mark

        mark(self.connection, seen)

    def _documents(self, query: Select[Any]) -> dict[int, Document]:
        """The documents that a query of `_DOCUMENTS` finds, by number."""
        return {
            row.document_id: Document(
                row.external_id, row.text, row.title, stored_json(row.metadata, dict)
            )
            for row in self.connection.execute(query)
        }

    def _view(self, space: Space) -> SpaceView:
        return self._view_of(self.connection, space, self._restrictions.revision)

    @cached_property
    def _restrictions(self) -> Restrictions:
        return Restrictions(self.connection, self._memory)

    def _listed_share(self, restriction: Restriction, least: float) -> float:
        """The share of documents that match a restriction; 0, to list them, below `least`."""
        share = self._restrictions.share(restriction)
        return share if share >= least else 0

    def _least_share(self, restriction: Restriction) -> float:
        """The share below which the matching documents are listed."""
        is_indexed = self._restrictions.is_indexed(restriction)
        return LISTED_SHARE_BY_INDEX if is_indexed else LISTED_SHARE

    def _owners(self, chunk_ids: Ids, clause: ColumnElement[bool] | None) -> dict[int, int]:
        """The document of each chunk that still exists, if it matches a condition."""
        wanted = chunk_ids.tolist()
        if clause is None:
            with read_rows(self.connection, _OWNERS, [json.dumps(wanted)]) as cursor:
                rows = cursor.fetchall()
            return dict(zip(*checked_columns(rows, *_OWNERS_CHECKS), strict=True)) if rows else {}
        query = _MATCHING_OWNERS.where(clause)
        matching = self.connection.execute(query, {"chunk_ids": wanted})
        return {row.chunk_id: row.document_id for row in matching}


def _depth(wanted: int, share: float) -> int:
    """How many nearest passages to search so that `wanted` of them match, if this share does."""
    return math.ceil((wanted + SPARE_DEVIATIONS * math.sqrt(wanted * (1 - share))) / share)


def _best(
    scored: Iterable[tuple[float, int]], owners: dict[int, int], k: int, per_document: int
) -> list[Candidate]:
    """The `k` best chunks, at most `per_document` of each, given scores and chunk ids, best first.

    Args:
        scored: best first.
        owners: the documents of chunks; those of other chunks do not count.
        k: the number of chunks.
        per_document: the number of chunks of a document.
    """
    found: list[Candidate] = []
    taken: dict[int, int] = {}
    for score, chunk_id in scored:
        document_id = owners.get(chunk_id)
        if document_id is None:
            continue
        count = taken.get(document_id, 0)
        if count < per_document:
            taken[document_id] = count + 1
            found.append(Candidate(document_id, chunk_id, score))
            if len(found) == k:
                break
    return found
