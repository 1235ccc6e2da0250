"""Reading an index on Milvus."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy

from semsearch.errors import ArgumentError, IndexBusyError
from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import SCORE_DECIMALS, Document, Kind, Passage, metadata_name
from semsearch.storage.interface import (
    EVERYTHING,
    NO_RESTRICTION,
    Field,
    FieldValues,
    FoundPassage,
    IndexInfo,
    NewPassage,
    Passages,
    Restriction,
    ScoredPassage,
    Selection,
    Settings,
    StoredDocument,
    TextVectors,
    text_hash,
)
from semsearch.storage.milvus.conditions import all_of, has_values, to_expression
from semsearch.storage.milvus.connection import IDS_AT_ONCE, Connection, Row
from semsearch.storage.milvus.schema import (
    FORMAT_VERSION,
    LISTS,
    RECORD_ID,
    IndexRecord,
    document_of,
    passage_ids,
)
from semsearch.storage.spaces import Space, check_searchable
from semsearch.vector_indexes import FLAT, chosen_kind

#: How many documents a page spans.
PAGE = 4096

#: Documents that are neither being written nor removed, and were not when a command was killed.
FINISHED, UNFINISHED = 'text_hash != ""', 'text_hash == ""'

_WHOLE = ("title", "metadata", "passages", "text_hash")

#: The columns that are searched.
VECTORS, WORDS = "vector", "words"
#: The most rows that a server returns for a query.
MAX_ROWS = 16_384
#: For how many rows queries are sent at once.
ROWS_AT_ONCE = 8192
#: How many lists an approximate search searches, if that is enough.
SEARCHED_LISTS = 64


class MilvusReader:
    """What is written by now; see `semsearch.storage.interface.Reader`.

    Milvus keeps no older states: what is written while this one is read can be read, too.
    """

    def __init__(self, connection: Connection, record: IndexRecord) -> None:
        self.connection = connection
        self.record = record

    def settings(self) -> Settings:
        return self.record.settings

    def spaces(self) -> list[Space]:
        return list(self.record.spaces)

    def info(self) -> IndexInfo:
        return IndexInfo(
            path=self.connection.address,
            format=FORMAT_VERSION,
            documents=self.count(),
            passages=self.size(self.base),
            fields=self._counted_fields(),
            spaces=self.spaces(),
            snapshots={},
            files={},
            language=None,
            indexed_fields=[],
            has_words=self.connection.has_bm25,
        )

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields so far, by name."""
        fields: dict[str, set[Kind]] = {}
        for name, kind in self.record.kinds:
            fields.setdefault(metadata_name(name), set()).add(Kind(kind))
        return fields

    def field_values(self, condition: Condition | None = None) -> list[FieldValues]:
        """The metadata fields, without values: Milvus does not group by fields in JSON."""
        return [
            FieldValues(name, sorted(kind.value for kind in kinds), [], None, None, [])
            for name, kinds in sorted(self.fields().items())
        ]

    def texts_like(self, field: str, typed: str, limit: int = 20) -> list[tuple[str, int]]:
        """None, for the same reason."""
        return []

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        if selection.ids is None:
            return self.size(self.connection.name, to_expression(selection.condition))
        return len(self.ids(selection))

    def ids(
        self, selection: Selection = EVERYTHING, limit: int | None = None, offset: int = 0
    ) -> list[str]:
        ids = (row["id"] for rows in self.selected(selection, []) for row in rows)
        return list(islice(ids, offset, None if limit is None else offset + limit))

    def selected(self, selection: Selection, fields: Iterable[str]) -> Iterator[list[Row]]:
        """The rows of selected documents, in the order of addition."""
        condition = to_expression(selection.condition)
        if selection.ids is None:
            yield from self.pages(fields, condition)
        else:
            yield self.named(selection.ids, fields, condition)

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        return {str(one.id): one for one in self._whole(self.named(ids, _WHOLE, FINISHED))}

    def scan(self, size: int = IDS_AT_ONCE) -> Iterator[list[Document]]:
        for page in self.pages(_WHOLE, FINISHED):
            for start in range(0, len(page), size):
                yield self._whole(page[start : start + size])

    def stored_documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        return {
            row["id"]: StoredDocument(
                row["document"], json.loads(row["title"]), row["metadata"], row["text_hash"]
            )
            for row in self.named(ids, ["title", "metadata", "text_hash"])
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        fields = NewPassage._fields
        documents = self.named(ids, ["passages"])
        passages: dict[str, list[NewPassage]] = {row["id"]: [] for row in documents}
        for row in self.by_id(self.base, passage_ids(documents), ["id", *fields]):
            passages[row["id"]].append(NewPassage(*(row[name] for name in fields)))
        return passages

    def vectors_of_texts(self, hashes: Sequence[str]) -> TextVectors:
        vectors: TextVectors = {}
        for space in self.spaces():
            collection = self.connection.passages(space)
            rows = self.connection.listed(collection, "text_hash", hashes, ["passage"])
            passages = {row["text_hash"]: row["passage"] for row in rows}  # one for each text
            for row in self.by_id(collection, passages.values(), ["text_hash", "vector"]):
                vectors[space.id, row["text_hash"]] = numpy.array(row["vector"], numpy.float32)
        return vectors

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        check_searchable(space, self.spaces())
        matching = all_of(FINISHED, to_expression(condition))
        ids = [one for page in self.pages(["passages"], matching) for one in passage_ids(page)]
        columns = ["id", "document", "text", "vector"]
        rows = self.by_id(self.connection.passages(space), ids, columns)
        vectors = numpy.array([row["vector"] for row in rows], numpy.float32)
        return Passages(
            document_ids=[row["id"] for row in rows],
            documents=numpy.array([row["document"] for row in rows], numpy.int64),
            passage_ids=numpy.array([row["passage"] for row in rows], numpy.int64),
            texts=[row["text"] for row in rows],
            vectors=vectors.reshape(len(rows), space.dimension),
        )

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """None: no space is added to an index with documents."""
        return []

    # Search.

    def prepare(self, space: Space) -> None:
        """Milvus has loaded the vectors."""

    def search_vectors(
        self, space: Space, queries: Matrix, k: int, restriction: Restriction = NO_RESTRICTION
    ) -> list[list[ScoredPassage]]:
        check_searchable(space, self.spaces())
        collection, condition = self.connection.passages(space), _expression(restriction)
        search = Search(self.connection, collection, VECTORS, condition, self._lists(space))
        return search.best(list(queries), k, restriction.per_document)

    def search_bm25(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        phrases: Sequence[str] = (),
    ) -> list[ScoredPassage]:
        """The `k` best passages by Milvus' BM25, which knows no phrases, best first."""
        if not self.connection.has_bm25:
            raise ArgumentError(
                f"Milvus {self.connection.version} has no BM25: search with --mode semantic"
            )
        search = Search(self.connection, self.base, WORDS, _expression(restriction))
        return search.best([text], k, restriction.per_document)[0]

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        """None: Milvus does not tell them."""
        return {}

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        columns = ["id", "start", "end", "text"]
        rows = list(self.connection.listed(self.base, "passage", passage_ids, columns))
        columns = ["title", "metadata"]
        owners = {row["id"]: row for row in self.named({row["id"] for row in rows}, columns)}
        return {
            row["passage"]: FoundPassage(
                Passage(row["passage"], row["id"], row["start"], row["end"], row["text"]),
                json.loads(owners[row["id"]]["metadata"]),
                json.loads(owners[row["id"]]["title"]),
            )
            for row in rows
            if row["id"] in owners
        }

    def _lists(self, space: Space) -> int:
        """How many lists are searched: all of them, which is exact, while there are few vectors."""
        wanted, about = self.record.settings.index_type, self.record.last_document
        return LISTS if chosen_kind(wanted, about, space.dimension) == FLAT else SEARCHED_LISTS

    def _whole(self, rows: Sequence[Row]) -> list[Document]:
        """Documents with their texts.

        Raises:
            IndexBusyError: one was written meanwhile.
        """
        parts = ["before", "text", "after"]
        texts = {row["document"]: "" for row in rows}
        for passage in self.by_id(self.base, passage_ids(rows), ["document", *parts]):
            texts[passage["document"]] += "".join(passage[part] for part in parts)
        whole = []
        for row in rows:
            text = texts[row["document"]]
            if text_hash(text) != row["text_hash"]:
                raise IndexBusyError(
                    f"{self.connection.address} was written while it was read, or a command was "
                    "killed; index the documents again, or see: semsearch verify --repair"
                )
            title, metadata = json.loads(row["title"]), json.loads(row["metadata"])
            whole.append(Document(row["id"], text, title, metadata))
        return whole

    def _counted_fields(self) -> list[Field]:
        """The fields of the present documents, with the most frequent kinds first."""
        counts = [
            (self.size(self.connection.name, has_values(name, kind)), name, kind)
            for name, kind in self.record.kinds
        ]
        fields: dict[str, dict[str, int]] = {}
        for count, name, kind in sorted(counts, reverse=True):
            if count:
                fields.setdefault(metadata_name(name), {})[kind] = count
        return [Field(name, kinds) for name, kinds in sorted(fields.items())]

    # Rows.

    @property
    def base(self) -> str:
        """The collection of the first space, from which passages are read."""
        return self.connection.passages(self.record.spaces[0])

    def size(self, collection: str, condition: str = "") -> int:
        """The number of documents, or of passages, that match a condition."""
        counted = all_of("document > 0", condition)
        [row] = self.connection.query(collection, counted, ["count(*)"])
        return int(row["count(*)"])

    def by_id(self, collection: str, ids: Iterable[int], fields: Iterable[str]) -> list[Row]:
        """Passages in the order of their ids."""
        rows = self.connection.listed(collection, "passage", ids, fields)
        return sorted(rows, key=lambda row: int(row["passage"]))

    def pages(self, fields: Iterable[str], rest: str = "") -> Iterator[list[Row]]:
        """Documents that match the `rest` of a condition, in the order of addition."""
        columns = {"id", "document", *fields}
        for start in range(0, self.record.last_document, PAGE):
            page = all_of(f"document > {start} and document <= {start + PAGE}", rest)
            rows = self.connection.query(self.connection.name, page, columns)
            yield sorted(rows, key=lambda row: int(row["document"]))

    def named(self, ids: Iterable[str], fields: Iterable[str], rest: str = "") -> list[Row]:
        """The documents with these ids, in the order of addition."""
        wanted, columns = {*ids} - {RECORD_ID}, {"document", *fields}
        rows = self.connection.listed(self.connection.name, "id", wanted, columns, rest)
        return sorted(rows, key=lambda row: int(row["document"]))


def _expression(restriction: Restriction) -> str:
    if restriction.required or restriction.excluded:
        raise ArgumentError("an index on Milvus has no --require and no -word")
    return to_expression(restriction.condition)


class Search(NamedTuple):
    """Searches the passages of a space."""

    connection: Connection
    collection: str
    column: str  #: `VECTORS` or `WORDS`
    condition: str  #: an expression; empty for none
    lists: int = LISTS  #: how many to search, if that is enough

    def best(self, queries: Sequence[Any], k: int, per_document: int) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query; see `Reader.search_vectors`."""
        limit = min(2 * k + 8, MAX_ROWS)
        step = max(1, ROWS_AT_ONCE // limit)
        found: list[list[ScoredPassage]] = []
        for start in range(0, len(queries), step):
            some = queries[start : start + step]
            for query, passages in zip(some, self._request(some, limit, self.lists), strict=True):
                found.append(self._completed(query, passages, limit, k, per_document))
        return found

    def _completed(
        self, query: Any, passages: list[ScoredPassage], limit: int, k: int, per_document: int
    ) -> list[ScoredPassage]:
        """The `k` best passages, given the first ones.

        More are requested while fewer than `k` count, or while others may have the same score.
        """
        lists = self.lists
        while True:
            best = _best(passages, per_document)
            if len(best) >= k and best[k - 1].score > passages[-1].score:
                return best[:k]
            if len(passages) == limit < MAX_ROWS:
                limit = min(4 * limit, MAX_ROWS)
            elif len(best) < k and lists < LISTS:
                lists = LISTS  # others may be in the other lists
            else:
                return best[:k]
            [passages] = self._request([query], limit, lists)

    def _request(self, queries: Sequence[Any], limit: int, lists: int) -> list[list[ScoredPassage]]:
        """The best passages of each query, best first."""
        answers = self.connection.call(
            "search",
            self.collection,
            data=list(queries),
            limit=limit,
            filter=self.condition,
            search_params={"params": {"nprobe": lists}},
            anns_field=self.column,
            consistency_level="Session",
        )
        # milvus-lite returns the scores of BM25 with the opposite sign.
        sign = -1 if self.column == WORDS and self.connection.is_file else 1
        return [[_scored(hit, sign) for hit in answer] for answer in answers]


def _scored(hit: Any, sign: int) -> ScoredPassage:
    score = round(sign * hit["distance"], SCORE_DECIMALS)
    return ScoredPassage(document_of(hit.id), hit.id, score)


def _best(passages: list[ScoredPassage], per_document: int) -> list[ScoredPassage]:
    """At most some passages of each document, best first; equal scores by passage id."""
    taken: Counter[int] = Counter()
    best = []
    for passage in sorted(passages, key=lambda one: (-one.score, one.passage_id)):
        taken[passage.document_id] += 1
        if taken[passage.document_id] <= per_document:
            best.append(passage)
    return best
