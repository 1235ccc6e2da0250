"""Reading an index on Milvus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy

from semsearch.analysis.forms import folded, words
from semsearch.errors import IndexChangedError, UnsupportedByStoreError
from semsearch.filters import Condition
from semsearch.protocols import Matrix, off_unit
from semsearch.records import Chunk, Document, Kind
from semsearch.stores.milvus.conditions import elements, kind_of
from semsearch.stores.milvus.connection import Connection, Row
from semsearch.stores.milvus.rows import Rows, passage_ids
from semsearch.stores.milvus.run import Run
from semsearch.stores.milvus.schema import FORMAT_VERSION, Settings, unit_vectors
from semsearch.stores.milvus.search import Search
from semsearch.stores.protocol import (
    EVERYTHING,
    NO_RESTRICTION,
    Candidate,
    Field,
    FoundPassage,
    NewPassage,
    Passages,
    Restriction,
    Seen,
    Selection,
    Space,
    StoredDocument,
    StoreInfo,
    TextVectors,
    check_searchable,
)
from semsearch.vector_indexes import IndexType

_WHOLE_DOCUMENT = ("id", "title", "metadata", "ending", "first", "passages")


class MilvusState:
    """What is written by now; see `semsearch.stores.protocol.StoreState`.

    Milvus keeps no older states: what is written while this one is read can be read, too.

    Args:
        connection: to Milvus.
        run: the documents that the current run has read.
    """

    def __init__(self, connection: Connection, run: Run) -> None:
        self.rows = Rows(connection)
        self._run = run

    @property
    def settings(self) -> Settings:
        """The settings of the index."""
        return self.rows.settings

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

    def info(self) -> StoreInfo:
        """The contents of the store; examples of fields are from the first documents."""
        first = next(self.rows.document_pages(["metadata"]), [])
        metadata = [json.loads(row["metadata"]) for row in first]
        fields = [
            Field(name, dict(kinds), _example(metadata, name, next(iter(kinds))))
            for name, kinds in sorted(self.settings.fields.items())
        ]
        return StoreInfo(
            format=FORMAT_VERSION,
            documents=self.count(),
            chunks=self.rows.count(self.rows.passages, "document > 0"),
            fields=fields,
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
            return self.rows.count(self.rows.documents, "document > 0")
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
        condition = self.rows.expression(selection.condition)
        pages: Iterable[list[Row]]
        if selection.ids is None:
            pages = self.rows.document_pages(["id", *fields], condition)
        else:
            pages = [self.rows.named(selection.ids, fields, condition)]
        for rows in pages:
            seen = self._run.seen([row["id"] for row in rows]) if selection.unseen else {}
            if unseen := [row for row in rows if row["id"] not in seen]:
                yield unseen

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        found = self._whole(self.rows.named(ids, _WHOLE_DOCUMENT))
        return {str(document.id): document for document in found.values()}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of addition."""
        rows: list[Row] = []
        for page in self.rows.document_pages(_WHOLE_DOCUMENT, "passages > 0", after=last):
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
            for row in self.rows.named(ids, ["title", "metadata", "text_hash"])
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""
        documents = self.rows.named(ids, ["first", "passages"])
        passages = self._passages(documents, ["start", "end", "text", "text_hash"])
        return {
            document["id"]: [
                NewPassage(row["start"], row["end"], row["text"], row["text_hash"]) for row in rows
            ]
            for document, rows in zip(documents, passages, strict=True)
        }

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The undamaged stored vectors of texts, whatever their documents."""
        if not self.settings.last_passage:
            return {}
        rows = self.rows.listed(self.rows.passages, "text_hash", hashes, ["passage", "text_hash"])
        last = {row["text_hash"]: row["passage"] for row in rows}
        digests = {passage: digest for digest, passage in last.items()}
        vectors: TextVectors = {}
        for space in self.spaces():
            collection = self.rows.vectors(space)
            found = list(self.rows.listed(collection, "passage", digests, ["passage", "vector"]))
            matrix = unit_vectors(space, found)
            for row, vector, is_off in zip(found, matrix, off_unit(matrix), strict=True):
                if not is_off:
                    vectors[space.id, digests[row["passage"]]] = vector
        return vectors

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""
        check_searchable(space, self.spaces())
        expression = self.rows.expression(condition)
        rows: list[Row] = []
        vectors: list[Matrix] = [numpy.empty((0, space.dimension), numpy.float32)]
        for page in self.rows.passage_pages(self.rows.passages, ["document", "text"], expression):
            rows += page
            vectors.append(self.chunk_vectors(space, [row["passage"] for row in page]))
        owners = self.rows.owners((row["document"] for row in rows), ["id"])
        return Passages(
            document_ids=[owners[row["document"]]["id"] for row in rows],
            documents=numpy.array([row["document"] for row in rows], numpy.int64),
            chunk_ids=numpy.array([row["passage"] for row in rows], numpy.int64),
            texts=[row["text"] for row in rows],
            vectors=numpy.concatenate(vectors),
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""
        check_searchable(space, self.spaces())
        documents = self.rows.named(ids, ["first", "passages"])
        passages = [passage for document in documents for passage in passage_ids(document)]
        vectors = iter(self.chunk_vectors(space, passages))
        return {
            document["id"]: numpy.array([next(vectors) for _ in passage_ids(document)])
            for document in documents
            if document["passages"]
        }

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""
        found: list[tuple[int, str, str]] = []
        for page in self.rows.passage_pages(self.rows.passages, ["document", "text"], after=after):
            ids = [row["passage"] for row in page]
            held = {
                row["passage"]
                for row in self.rows.listed(self.rows.vectors(space), "passage", ids, ["passage"])
            }
            rows = [row for row in page if row["passage"] not in held]
            owners = self.rows.owners((row["document"] for row in rows), ["id"])
            found += [
                (row["passage"], row["text"], owners[row["document"]]["id"])
                for row in rows
                if row["document"] in owners
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
        condition = self._condition(restriction)
        return Search.by_vectors(self.rows, space, condition).best(list(queries), k, per_document)

    def plan(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        kind = Search.by_vectors(self.rows, space, "").kind
        exact = "exact" if kind == "FLAT" else "approximate"
        filtered = "" if restriction.condition is None else ", with the filter"
        return f"{exact} ({kind}), by Milvus {self.rows.connection.version}{filtered}"

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
                f"{self.rows.connection.target.address} has no BM25, which milvus-lite and Milvus "
                f"from 2.5 on have (here: {self.rows.connection.version}); search it with "
                "--mode semantic"
            )
        condition = self._condition(restriction)
        if not text.strip():
            return []
        return Search.by_words(self.rows, condition).best([text], k, per_document)[0]

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of chunks that occur in a text."""
        wanted = set(words(folded(text)))
        rows = self.rows.listed(self.rows.passages, "passage", chunk_ids, ["passage", "text"])
        return {
            row["passage"]: [
                word for word in dict.fromkeys(words(folded(row["text"]))) if word in wanted
            ]
            for row in rows
        }

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""
        fields = ["passage", "vector"]
        rows = list(self.rows.listed(self.rows.vectors(space), "passage", chunk_ids, fields))
        places = {row["passage"]: place for place, row in enumerate(rows)}
        if not places.keys() >= set(chunk_ids):
            raise self._changed()
        return unit_vectors(space, rows)[[places[chunk_id] for chunk_id in chunk_ids]]

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids."""
        fields = ["passage", "document", "start", "end", "text"]
        rows = list(self.rows.listed(self.rows.passages, "passage", chunk_ids, fields))
        owners = self.rows.owners((row["document"] for row in rows), ["id", "title", "metadata"])
        found = {}
        for row in rows:
            if owner := owners.get(row["document"]):
                passage = Chunk(row["passage"], owner["id"], row["start"], row["end"], row["text"])
                metadata, title = json.loads(owner["metadata"]), json.loads(owner["title"])
                found[passage.id] = FoundPassage(passage, metadata, title)
        if len(found) < len(set(chunk_ids)) and not missing_ok:
            raise self._changed()
        return found

    # The current run.

    def begin_run(self) -> None:
        """Start a run: no document has been seen."""
        self._run.begin()

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """Those of these documents that the run has seen."""
        return self._run.seen(ids)

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Mark documents as seen."""
        self._run.mark(seen)

    def _condition(self, restriction: Restriction) -> str:
        if restriction.required or restriction.excluded:
            raise UnsupportedByStoreError(
                f"{self.rows.connection.target.address}: an index on Milvus requires no phrases "
                "and excludes no words; search without --require and -word"
            )
        return self.rows.expression(restriction.condition)

    def _passages(self, documents: Sequence[Row], fields: Sequence[str]) -> list[list[Row]]:
        """The passages of each document.

        Raises:
            IndexChangedError: some are missing.
        """
        ids = [passage for document in documents for passage in passage_ids(document)]
        listed = self.rows.listed(self.rows.passages, "passage", ids, ["passage", *fields])
        rows = {row["passage"]: row for row in listed}
        if len(rows) < len(ids):
            raise self._changed()
        return [[rows[one] for one in passage_ids(document)] for document in documents]

    def _whole(self, rows: Sequence[Row]) -> dict[int, Document]:
        found = {}
        rows = [row for row in rows if row["passages"]]
        for row, passages in zip(rows, self._passages(rows, ["before", "text"]), strict=True):
            text = "".join(passage["before"] + passage["text"] for passage in passages)
            title, metadata = json.loads(row["title"]), json.loads(row["metadata"])
            found[row["document"]] = Document(row["id"], text + row["ending"], title, metadata)
        return found

    def _changed(self) -> IndexChangedError:
        return IndexChangedError(
            f"{self.rows.connection.target.address} was written while it was read, or a command "
            "was killed; index the documents again, or see: semsearch verify --repair"
        )


def _example(metadata: Iterable[Mapping[str, Any]], name: str, kind: str) -> Any:
    """A value of a field, or an element of a list, of a kind; None for objects and lists."""
    wanted = Kind(kind.rpartition(" ")[2])
    if wanted in (Kind.OBJECT, Kind.LIST, Kind.NULL):
        return None
    values = (value for fields in metadata for value in elements(fields.get(name)))
    return next((value for value in values if kind_of(value) is wanted), None)
