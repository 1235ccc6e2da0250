"""Reading an index on Milvus."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy

from semsearch.analysis import Analyser
from semsearch.errors import (
    DamagedIndexError,
    IndexChangedError,
    IndexStoreError,
    UnsupportedByStoreError,
)
from semsearch.filters import Condition, Value
from semsearch.protocols import Matrix, off_unit
from semsearch.records import Chunk, Document, Kind, metadata_field
from semsearch.stores.milvus.catalogue import FORMAT_VERSION, Bm25, Catalogue
from semsearch.stores.milvus.collections import (
    WORDS,
    documents_of,
    key_of,
    metric_of,
    passages_of,
    vectors_of,
)
from semsearch.stores.milvus.conditions import to_expression
from semsearch.stores.milvus.connection import SPARSE_VECTORS, Connection, Row
from semsearch.stores.milvus.kinds import Counts
from semsearch.stores.milvus.reader import VERSIONS, Reader
from semsearch.stores.milvus.run import Run
from semsearch.stores.milvus.search import VectorSearch
from semsearch.stores.milvus.values import FieldValues
from semsearch.stores.milvus.words import Totals, matched_words, query_vector
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

#: How many fields are listed with an example.
EXAMPLES = 50
#: The passages, best by their words, in which phrases are found.
PHRASE_DEPTH = 100


class MilvusState:
    """The committed documents, each of them whole; see `semsearch.stores.protocol.StoreState`.

    Milvus keeps no older states: what is written while this one is read is read, too.

    Args:
        connection: to Milvus.
        catalogue: as it was read before anything else.
        run: the documents that the present run has read.
    """

    def __init__(self, connection: Connection, catalogue: Catalogue, run: Run) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._run = run
        self.reader = Reader(connection, catalogue.content)
        self._values = FieldValues(self.reader)

    @property
    def max_tokens(self) -> int:
        """How many tokens a passage may have."""
        return self._catalogue.max_tokens

    @property
    def index_type(self) -> IndexType:
        """How vectors are to be searched."""
        return IndexType(self._catalogue.content.index_type)

    @property
    def unfinished_sync(self) -> int | None:
        """The number of documents before a sync that has not finished."""
        return self._catalogue.sync.get("documents")

    @property
    def corpora(self) -> dict[str, dict[str, Any]]:
        """How corpora were read."""
        return self._catalogue.corpora

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return list(self._catalogue.spaces)

    def info(self) -> IndexInfo:
        """What the store holds."""
        fields = [
            Field(name, dict(kinds), self._example_of(name, kinds) if place < EXAMPLES else None)
            for place, (name, kinds) in enumerate(sorted(self._catalogue.content.fields.items()))
        ]
        return IndexInfo(
            path=cast("Path", self._connection.target.address),
            format=FORMAT_VERSION,
            documents=self.count(),
            chunks=self._connection.count(passages_of(self._connection), "", self._since),
            fields=fields,
            spaces=self.spaces(),
            snapshots={},
            files={},
            language=self._catalogue.content.language,
            indexed_fields=[],
            has_words=self.has_words,
        )

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """How many documents there are, or are selected."""
        if selection.ids is not None or selection.unseen:
            return len(self.ids(selection))
        return self._connection.count(
            documents_of(self._connection), self._expression(selection.condition), self._since
        )

    def ids(self, selection: Selection = EVERYTHING, limit: int | None = None) -> list[str]:
        """The ids of the documents, or of those selected, in the order of their coming."""
        found: list[str] = []
        for rows in self.selected(selection, ["id"]):
            found += [row["id"] for row in rows]
            if limit is not None and len(found) >= limit:
                break
        return found[:limit]

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents of these ids, as they were added."""
        found: dict[int, Document] = {}
        for rows in self.selected(Selection(ids), _WHOLE):
            found |= self._whole(rows)
        return {str(document.id): document for document in found.values()}

    def documents_after(self, last: int, limit: int) -> dict[int, Document]:
        """The next documents by number, in the order of their coming."""
        rows: list[Row] = []
        for some in self.reader.documents(_WHOLE, last, limit):
            rows += some
            if len(rows) >= limit:
                break
        return self._whole(rows[:limit])

    def known(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """What the store has of the documents of these ids."""
        fields = ["id", "title", "metadata", "text_hash"]
        return {
            row["id"]: StoredDocument(
                row["document"], json.loads(row["title"]), row["metadata"], row["text_hash"]
            )
            for rows in self.selected(Selection(ids), fields)
            for row in rows
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, by the documents' ids."""
        owners = [row for rows in self.selected(Selection(ids), ["id"]) for row in rows]
        found: dict[str, list[NewPassage]] = {row["id"]: [] for row in owners}
        names = {row["document"]: row["id"] for row in owners}
        for row in self._passages_of(owners, ["start", "end", "text", "text_hash"]):
            passage = NewPassage(row["start"], row["end"], row["text"], row["text_hash"])
            found[names[row["document"]]].append(passage)
        return found

    def vectors_of(self, hashes: Sequence[str]) -> TextVectors:
        """The sound vectors that the store has for texts, under whatever document."""
        found: TextVectors = {}
        if not self._catalogue.content.document:
            return found
        digests = {
            row["chunk"]: row["text_hash"]
            for row in self.reader.listed(
                passages_of(self._connection), "text_hash", sorted(set(hashes)), ["chunk"]
            )
        }
        first = {digest: chunk for chunk, digest in sorted(digests.items(), reverse=True)}
        for space in self.spaces() if digests else []:
            collection = vectors_of(self._connection, space)
            rows = list(self.reader.listed(collection, "chunk", sorted(first.values()), ["vector"]))
            matrix = _matrix(space, rows)
            for row, vector, is_off in zip(rows, matrix, off_unit(matrix), strict=True):
                if not is_off:
                    found[space.id, digests[row["chunk"]]] = vector
        return found

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents meet a condition."""
        check_searchable(space, self.spaces())
        found: list[tuple[int, str, int, str, Matrix]] = []
        for owners in self.selected(Selection(condition=condition), ["id"]):
            names = {row["document"]: row["id"] for row in owners}
            vectors = self._vectors_of_documents(space, owners)
            for row in self._passages_of(owners, ["text"]):
                if row["chunk"] not in vectors:
                    raise self._changed()
                number = row["document"]
                found.append(
                    (row["chunk"], names[number], number, row["text"], vectors[row["chunk"]])
                )
        found.sort(key=lambda one: one[0])
        matrix = numpy.array([one[4] for one in found], numpy.float32)
        return Passages(
            document_ids=[one[1] for one in found],
            documents=numpy.array([one[2] for one in found], numpy.int64),
            chunk_ids=numpy.array([one[0] for one in found], numpy.int64),
            texts=[one[3] for one in found],
            vectors=matrix.reshape(len(found), space.dimension),
        )

    def document_vectors(self, space: Space, ids: Sequence[str]) -> dict[str, Matrix]:
        """The vectors of the passages of documents, each of shape (passages, dimension)."""
        check_searchable(space, self.spaces())
        owners = [row for rows in self.selected(Selection(ids), ["id"]) for row in rows]
        vectors = self._vectors_of_documents(space, owners)
        names = {row["document"]: row["id"] for row in owners}
        found: dict[str, list[Matrix]] = {}
        for row in self._passages_of(owners, []):
            if row["chunk"] not in vectors:
                raise self._changed()
            found.setdefault(names[row["document"]], []).append(vectors[row["chunk"]])
        return {name: numpy.array(rows) for name, rows in found.items()}

    def lacking(self, space: Space, after: int, limit: int) -> list[tuple[int, str, str]]:
        """Passages without a vector: chunk id, text and document id, above a chunk id."""
        found: list[tuple[int, str, str]] = []
        fields = ["document", "version", "text"]
        passages, vectors = passages_of(self._connection), vectors_of(self._connection, space)
        for rows in self.reader.in_order(passages, "chunk", fields, after, limit):
            owners = self.reader.owners((row["document"] for row in rows), ["id"])
            chunks = [row["chunk"] for row in rows]
            held = {
                row["chunk"]
                for row in self.reader.listed(vectors, "chunk", chunks, ["document", "version"])
                if row["document"] in owners
                and row["version"] == owners[row["document"]]["version"]
            }
            for row in rows:
                owner = owners.get(row["document"])
                is_live = owner is not None and owner["text_version"] == row["version"]
                if owner is not None and is_live and row["chunk"] not in held:
                    found.append((row["chunk"], row["text"], owner["id"]))
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
        return self._search(space, restriction).best(queries, k, per_document)

    def plan(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        kind = "exact" if self._is_exact else "HNSW"
        filtered = "" if restriction.condition is None else ", with the filter"
        return f"{kind}, by Milvus {self._connection.version}{filtered}"

    def search_words(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[Candidate]:
        """The `k` best passages by BM25 over their words, best first.

        Phrases are found in the first passages only, as Milvus finds none.
        """
        self._check_words()
        query = query_vector(self._connection, text, self.analyser, self.totals, self._since)
        if not query:
            return []
        depth = max(k, PHRASE_DEPTH) if phrases else k
        [found] = self._search(WORDS, restriction).best([query], depth, per_document)
        if phrases and found:
            texts = self._texts([one.chunk_id for one in found])
            terms = map(self.analyser.phrase_term, phrases)
            held = Counter(
                chunk_id for term in terms for chunk_id in matched_words(term, texts, self.analyser)
            )
            best = found[0].score
            found = [one._replace(score=one.score + best * held[one.chunk_id]) for one in found]
            found.sort(key=lambda one: (-one.score, one.chunk_id))
        return found[:k]

    def matched_words(self, text: str, chunk_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of chunks, as BM25 reads them, that a text has too."""
        if not self.has_words:
            return {}
        match = self.analyser.match_expression(text)
        return matched_words(match, self._texts(chunk_ids), self.analyser)

    def chunk_vectors(self, space: Space, chunk_ids: Sequence[int]) -> Matrix:
        """The vectors of chunks, shape (len(chunk_ids), dimension)."""
        collection = vectors_of(self._connection, space)
        rows = list(self.reader.listed(collection, "chunk", chunk_ids, ["vector"]))
        vectors = {
            row["chunk"]: vector for row, vector in zip(rows, _unit(space, rows), strict=True)
        }
        if not vectors.keys() >= set(chunk_ids):
            raise self._changed()
        matrix = numpy.array([vectors[chunk_id] for chunk_id in chunk_ids], numpy.float32)
        return matrix.reshape(len(chunk_ids), space.dimension)

    def fetch(
        self, chunk_ids: Sequence[int], *, missing_ok: bool = False
    ) -> dict[int, FoundPassage]:
        """Chunks by their ids."""
        rows = self.reader.chunks(chunk_ids, ["document", "version", "start", "end", "text"])
        owners = self.reader.owners((row["document"] for row in rows), ["id", "title", "metadata"])
        versions = {number: owner["text_version"] for number, owner in owners.items()}
        rows = [row for row in rows if versions.get(row["document"]) == row["version"]]
        if len(rows) < len(set(chunk_ids)) and not missing_ok:
            raise self._changed()
        found = {}
        for row in rows:
            owner = owners[row["document"]]
            chunk = Chunk(row["chunk"], owner["id"], row["start"], row["end"], row["text"])
            title = json.loads(owner["title"])
            found[chunk.id] = FoundPassage(chunk, json.loads(owner["metadata"]), title)
        return found

    # Metadata fields.

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name."""
        fields = self._catalogue.content.fields
        return {
            name: {Kind(kind.rpartition(" ")[2]) for kind in kinds}
            for name, kinds in fields.items()
        }

    # The present run.

    def begin_run(self) -> None:
        """Forget which documents have been seen."""
        self._run.begin()

    def seen(self, ids: Sequence[str]) -> dict[str, Seen]:
        """The ones of these that the run has seen."""
        return self._run.seen(ids)

    def mark_seen(self, seen: Mapping[str, Seen]) -> None:
        """Remember that documents have been seen."""
        self._run.mark(seen)

    # For this store's own.

    @property
    def has_words(self) -> bool:
        """Whether passages are found by BM25."""
        return self._catalogue.content.bm25 == Bm25.READY.value

    @property
    def totals(self) -> Totals:
        """How many passages BM25 knows, and how many words they have."""
        return Totals(self._catalogue.content.passages, self._catalogue.content.words)

    @property
    def analyser(self) -> Analyser:
        """Reads texts as BM25 does."""
        return Analyser(self._catalogue.content.language)

    def vector_spaces(self) -> list[Space]:
        """The embedding spaces and, where there is BM25, words."""
        return [*self.spaces(), *([WORDS] if self.has_words else [])]

    @property
    def field_counts(self) -> Counts:
        """The kinds of values that fields hold, as each commit counts them."""
        return self._catalogue.content.fields

    def selected(self, selection: Selection, fields: Sequence[str]) -> Iterator[list[Row]]:
        """The rows of documents that are selected, in the order of their coming, some at a time."""
        columns, condition = [*fields, "id", *VERSIONS], self._expression(selection.condition)
        if selection.ids is None:
            pages: Iterable[list[Row]] = self.reader.documents(columns, condition=condition)
        else:
            collection = documents_of(self._connection)
            keys = sorted(map(key_of, set(selection.ids)))
            named = self.reader.listed(collection, "key", keys, columns, condition)
            pages = [sorted(named, key=lambda row: int(row["document"]))]
        for rows in pages:
            if selection.unseen:
                seen = self._run.seen([row["id"] for row in rows])
                rows = [row for row in rows if row["id"] not in seen]
            if rows:
                yield rows

    def _vectors_of_documents(self, space: Space, owners: Sequence[Row]) -> dict[int, Matrix]:
        rows = self.reader.live_vectors(space, owners, ["vector"])
        return {row["chunk"]: vector for row, vector in zip(rows, _unit(space, rows), strict=True)}

    def _passages_of(self, owners: Sequence[Row], fields: Sequence[str]) -> list[Row]:
        """All passages of documents, whose rows are given, in their order.

        Raises:
            IndexChangedError: a document was written meanwhile.
            DamagedIndexError: a document lacks passages.
        """
        passages = self.reader.live_passages(owners, fields)
        counts = Counter(row["document"] for row in passages)
        for owner in owners:
            number = owner["document"]
            if counts[number] == owner["passages"]:
                continue
            present = self._connection.query(
                documents_of(self._connection), f"document == {number}", ["version"], 0
            )
            if [row["version"] for row in present] != [owner["version"]]:
                raise self._changed()
            raise DamagedIndexError(
                f"document '{owner['id']}' lacks passages; see: semsearch verify"
            )
        return passages

    def _texts(self, chunk_ids: Sequence[int]) -> dict[int, str]:
        return {row["chunk"]: row["text"] for row in self.reader.chunks(chunk_ids, ["text"])}

    def _whole(self, rows: Sequence[Row]) -> dict[int, Document]:
        passages: dict[int, list[tuple[int, int, str]]] = {row["document"]: [] for row in rows}
        for row in self._passages_of(rows, ["start", "end", "text"]):
            passages[row["document"]].append((row["start"], row["end"], row["text"]))
        found = {}
        for row in rows:
            number = row["document"]
            text, title = joined(passages[number], row["rest"]), json.loads(row["title"])
            found[number] = Document(row["id"], text, title, json.loads(row["metadata"]))
        return found

    def _expression(self, condition: Condition | None) -> str:
        return "" if condition is None else to_expression(condition, self._values.matching)

    def _example_of(self, name: str, kinds: Mapping[str, int]) -> Value | None:
        most = next(iter(kinds)).rpartition(" ")[2]
        return self._values.example(metadata_field(name), Kind(most))

    @property
    def _is_exact(self) -> bool:
        return not self._catalogue.content.is_graph

    @property
    def _since(self) -> int:
        return self._catalogue.content.written

    def _changed(self) -> IndexChangedError:
        return IndexChangedError(
            f"{self._connection.target.address} was written while it was read; try again, and if "
            "that does not help, run: semsearch verify"
        )

    def _search(self, space: Space, restriction: Restriction) -> VectorSearch:
        if restriction.required or restriction.excluded:
            raise UnsupportedByStoreError(
                f"{self._connection.target.address}: an index on Milvus requires no phrases and "
                "excludes no words; search without --require and -word, or a copy of the index "
                "that semsearch pull has made"
            )
        return VectorSearch(
            self._connection,
            vectors_of(self._connection, space),
            self._expression(restriction.condition),
            self._since,
            self.reader.owners,
            metric_of(space),
            self._is_exact or space == WORDS,
        )

    def _check_words(self) -> None:
        bm25 = self._catalogue.content.bm25
        if bm25 == Bm25.READY.value:
            return
        address = self._connection.target.address
        if bm25 == Bm25.BUILDING.value:
            raise IndexStoreError(
                f"{address}: its BM25 is being built; if that was interrupted, the next command "
                "that writes the index builds it"
            )
        raise UnsupportedByStoreError(
            f"{address} has no BM25, which milvus-lite and Milvus from "
            f"{'.'.join(map(str, SPARSE_VECTORS))} on have (here: {self._connection.version}); "
            "search it with --mode semantic, or a copy of it that semsearch pull has made"
        )


_WHOLE = ["id", "title", "metadata", "rest", *VERSIONS]


def _unit(space: Space, rows: Sequence[Row]) -> Matrix:
    matrix = _matrix(space, rows)
    if space.dtype == "float16":  # rounding changed their length
        matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def _matrix(space: Space, rows: Sequence[Row]) -> Matrix:
    matrix = numpy.array([row["vector"] for row in rows], numpy.float32)
    return matrix.reshape(len(rows), space.dimension)


def joined(passages: Sequence[tuple[int, int, str]], rest: str) -> str:
    """The text made of these passages and the characters outside them (`rest_of`)."""
    parts: list[str] = []
    place = used = 0
    for start, end, text in passages:
        gap = start - place
        parts += (rest[used : used + gap], text)
        place, used = end, used + gap
    return "".join([*parts, rest[used:]])
