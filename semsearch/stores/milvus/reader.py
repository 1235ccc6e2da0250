"""Reading an index on Milvus."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy

from semsearch.analysis.forms import folded, words
from semsearch.errors import UnsupportedByStoreError
from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import Chunk, Document, Kind
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.rows import Rows, passage_ids
from semsearch.stores.milvus.schema import FORMAT_VERSION, WORDS, Settings
from semsearch.stores.milvus.search import Search
from semsearch.stores.protocol import (
    EVERYTHING,
    NO_RESTRICTION,
    Candidate,
    Field,
    FoundPassage,
    IndexInfo,
    NewPassage,
    Passages,
    Restriction,
    Seen,
    Selection,
    Space,
    StoredDocument,
    TextVectors,
    check_searchable,
)
from semsearch.vector_indexes import IndexType

_WHOLE = ("id", "title", "metadata", "ending", "first", "passages")


class MilvusState(Rows):
    """What is written by now; see `semsearch.stores.protocol.StoreState`.

    Milvus keeps no older states: what is written while this one is read can be read, too.

    Args:
        connection: to Milvus.
        run: a temporary database for the documents that the current run has read.
        settings: of the index, if they are known.
    """

    def __init__(
        self, connection: Connection, run: sqlite3.Connection, settings: Settings | None = None
    ) -> None:
        super().__init__(connection, settings)
        self._run = run

    @property
    def max_tokens(self) -> int:
        """The maximum number of tokens of a passage."""
        return self.settings.max_tokens

    @property
    def index_type(self) -> IndexType:
        """The requested type of vector index."""
        return IndexType(self.settings.index_type)

    @property
    def unfinished_sync(self) -> int | None:
        """The number of documents before a sync that has not finished."""
        return self.settings.unfinished_sync

    @property
    def corpora(self) -> dict[str, dict[str, Any]]:
        """How corpora were read."""
        return dict(self.settings.corpora)

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return list(self.settings.spaces)

    def info(self) -> IndexInfo:
        """The contents of the index."""
        return IndexInfo(
            path=cast("Path", self.target.address),
            format=FORMAT_VERSION,
            documents=self.count(),
            chunks=self.size(self.target.passages),
            fields=[Field(name, dict(kinds)) for name, kinds in self.settings.fields.items()],
            spaces=self.spaces(),
            snapshots={},
            files={},
            language=None,
            indexed_fields=[],
            has_words=self.settings.has_words,
        )

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name."""
        return {
            name: {Kind(kind.rpartition(" ")[2]) for kind in kinds}
            for name, kinds in self.settings.fields.items()
        }

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""
        if selection == EVERYTHING:
            return self.size(self.target.name)
        return sum(len(rows) for rows in self.selected(selection, []))

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of all documents, or of selected ones, in the order of addition."""
        ids: list[str] = []
        for rows in self.selected(selection, []):
            ids += [row["id"] for row in rows]
            if limit is not None and len(ids) >= limit:
                break
        return ids[:limit]

    def selected(self, selection: Selection, fields: Sequence[str]) -> Iterator[list[Row]]:
        """The rows of selected documents, in the order of addition."""
        condition = self.expression(selection.condition)
        pages: Iterable[list[Row]]
        if selection.ids is None:
            pages = self.pages(self.target.name, ["id", *fields], condition)
        else:
            pages = [self.named(selection.ids, fields, condition)]
        for rows in pages:
            seen = self.seen([row["id"] for row in rows]) if selection.unseen else {}
            if unseen := [row for row in rows if row["id"] not in seen]:
                yield unseen

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        whole = self._whole(self.named(ids, _WHOLE))
        return {str(document.id): document for document in whole.values()}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of addition."""
        rows: list[Row] = []
        for page in self.pages(self.target.name, _WHOLE, "passages > 0", after=last):
            rows += page
            if len(rows) >= limit:
                break
        return self._whole(rows[:limit])

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The stored records of the documents with these ids."""
        return {
            row["id"]: StoredDocument(
                row["document"], json.loads(row["title"]), row["metadata"], row["text_hash"]
            )
            for row in self.named(ids, ["title", "metadata", "text_hash"])
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""
        documents = self.named(ids, ["first", "passages"])
        passages = self.passages_by_id(
            self.target.passages, passage_ids(documents), NewPassage._fields
        )
        return {
            document["id"]: [
                NewPassage(*(passages[passage][name] for name in NewPassage._fields))
                for passage in passage_ids([document])
            ]
            for document in documents
        }

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""
        if not self.settings.last_passage:
            return {}
        rows = self.listed(self.target.passages, "text_hash", hashes, ["passage"])
        newest_first = sorted(rows, key=lambda row: -int(row["passage"]))
        # Of several passages with a text, the oldest: a killed command leaves some without vectors.
        oldest = {row["text_hash"]: row["passage"] for row in newest_first}
        digests = {passage: digest for digest, passage in oldest.items()}
        vectors: TextVectors = {}
        for space in self.spaces():
            found = list(self.listed(self.target.vectors(space), "passage", digests, ["vector"]))
            matrix = numpy.array([row["vector"] for row in found], numpy.float32)
            for row, vector in zip(found, matrix, strict=True):
                vectors[space.id, digests[row["passage"]]] = vector
        return vectors

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""
        check_searchable(space, self.spaces())
        fields = ["id", "document", "text"]
        pages = self.pages(self.target.passages, fields, self.expression(condition))
        rows = [row for page in pages for row in page]
        ids = [row["passage"] for row in rows]
        return Passages(
            document_ids=[row["id"] for row in rows],
            documents=numpy.array([row["document"] for row in rows], numpy.int64),
            chunk_ids=numpy.array(ids, numpy.int64),
            texts=[row["text"] for row in rows],
            vectors=self.chunk_vectors(space, ids),
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""
        check_searchable(space, self.spaces())
        documents = self.named(ids, ["first", "passages"])
        vectors = self.chunk_vectors(space, passage_ids(documents))
        ends = numpy.cumsum([row["passages"] for row in documents])
        return dict(
            zip([row["id"] for row in documents], numpy.split(vectors, ends)[:-1], strict=True)
        )

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""
        found: list[tuple[int, str, str]] = []
        for page in self.pages(self.target.passages, ["id", "text"], after=after):
            ids = [row["passage"] for row in page]
            rows = self.listed(self.target.vectors(space), "passage", ids, [])
            held = {row["passage"] for row in rows}
            found += [
                (row["passage"], row["text"], row["id"])
                for row in page
                if row["passage"] not in held
            ]
            if len(found) >= limit:
                break
        return found[:limit]

    # Search.

    def prepare(self, space: Space) -> None:
        """Milvus has loaded the vectors."""

    def search_vectors(
        self,
        space: Space,
        queries: Matrix,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
    ) -> list[list[Candidate]]:
        """The `k` best passages of each query (fewer only when fewer match), best first."""
        check_searchable(space, self.spaces())
        search = Search(self, self.target.vectors(space), self._condition(restriction))
        return search.best(list(queries), k, per_document)

    def plan(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        kind = self.settings.index_kind
        exact = "exact" if kind == "FLAT" else "approximate"
        filtered = "" if restriction.condition is None else ", with the filter"
        return f"{exact} ({kind}), by Milvus {self.connection.version}{filtered}"

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[Candidate]:
        """The `k` best passages by Milvus' BM25, which knows no phrases, best first."""
        if not self.settings.has_words:
            raise UnsupportedByStoreError(
                f"{self.target.address} has no BM25, which milvus-lite and Milvus from "
                f"2.5 on have (here: {self.connection.version}); search it with --mode semantic"
            )
        search = Search(self, self.target.passages, self._condition(restriction), WORDS)
        return search.best([text], k, per_document)[0]

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of chunks that occur in a text."""
        wanted = set(words(folded(text)))
        rows = self.listed(self.target.passages, "passage", chunk_ids, ["text"])
        return {
            row["passage"]: [
                word for word in dict.fromkeys(words(folded(row["text"]))) if word in wanted
            ]
            for row in rows
        }

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""
        rows = self.passages_by_id(self.target.vectors(space), chunk_ids, ["vector"])
        matrix = numpy.array([rows[chunk_id]["vector"] for chunk_id in chunk_ids], numpy.float32)
        if space.dtype == "float16":  # copied vectors are rounded, which changes their length
            matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix.reshape(len(chunk_ids), space.dimension)

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids."""
        columns = ["id", "start", "end", "text"]
        rows = list(self.listed(self.target.passages, "passage", chunk_ids, columns))
        documents = self.named((row["id"] for row in rows), ["title", "metadata"])
        owners = {row["id"]: row for row in documents}
        found = {}
        for row in rows:
            if owner := owners.get(row["id"]):
                passage = Chunk(row["passage"], row["id"], row["start"], row["end"], row["text"])
                metadata, title = json.loads(owner["metadata"]), json.loads(owner["title"])
                found[passage.id] = FoundPassage(passage, metadata, title)
        if not missing_ok:
            self.check_complete(found, chunk_ids)
        return found

    # The current run, which may have more ids than fit in memory: kept on this machine.

    def begin_run(self) -> None:
        """Start a run: no document has been seen."""
        self._run.executescript(
            "DROP TABLE IF EXISTS seen;"
            "CREATE TABLE seen (id TEXT PRIMARY KEY, source TEXT, repeats INTEGER) WITHOUT ROWID;"
        )

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has seen."""
        listed = "SELECT * FROM seen WHERE id IN (SELECT value FROM json_each(?))"
        rows = self._run.execute(listed, [json.dumps(ids)])
        return {name: Seen(source, repeats) for name, source, repeats in rows}

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Mark documents as seen."""
        rows = [(name, *one) for name, one in seen.items()]
        self._run.executemany("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", rows)

    def _condition(self, restriction: Restriction) -> str:
        if restriction.required or restriction.excluded:
            raise UnsupportedByStoreError(
                f"{self.target.address}: an index on Milvus requires no phrases and "
                "excludes no words; search without --require and -word"
            )
        return self.expression(restriction.condition)

    def _whole(self, rows: Iterable[Row]) -> dict[int, Document]:
        """Documents by number; without those whose passages are not yet written."""
        rows = [row for row in rows if row["passages"]]
        passages = self.passages_by_id(self.target.passages, passage_ids(rows), ["before", "text"])
        whole = {}
        for row in rows:
            parts = (passages[passage] for passage in passage_ids([row]))
            text = "".join(part["before"] + part["text"] for part in parts) + row["ending"]
            title, metadata = json.loads(row["title"]), json.loads(row["metadata"])
            whole[row["document"]] = Document(row["id"], text, title, metadata)
        return whole
