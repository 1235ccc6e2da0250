"""Reading an index on Milvus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import numpy

from semsearch.errors import IndexBusyError, UnsupportedByStoreError
from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import Document, Kind, Passage, metadata_name
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
    EXACT,
    FORMAT_VERSION,
    LISTS,
    RECORD_ID,
    IndexRecord,
    document_of,
    passage_ids,
    read_record,
)
from semsearch.storage.milvus.search import SEARCHED_LISTS, VECTORS, WORDS, Search
from semsearch.storage.spaces import Space, check_searchable
from semsearch.storage.words.forms import folded, words

#: How many documents a page spans.
PAGE = 4096

#: Documents that are neither being written nor removed, and were not when a command was killed.
FINISHED, UNFINISHED = 'text_hash != ""', 'text_hash == ""'

_WHOLE = ("title", "metadata", "passages", "text_hash")


class MilvusReader:
    """What is written by now; see `semsearch.storage.interface.Reader`.

    Milvus keeps no older states: what is written while this one is read can be read, too.
    """

    def __init__(self, connection: Connection, record: IndexRecord | None = None) -> None:
        self.connection = connection
        self.target = connection.target
        self.record = record or read_record(connection)

    def settings(self) -> Settings:
        """The settings of the index."""
        return self.record.settings

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return list(self.record.spaces)

    def info(self) -> IndexInfo:
        """The contents of the index."""
        return IndexInfo(
            path=cast("Path", self.target.address),
            format=FORMAT_VERSION,
            documents=self.count(),
            passages=self.size(self.base),
            fields=self._counted_fields(),
            spaces=self.spaces(),
            snapshots={},
            files={},
            language=None,
            indexed_fields=[],
            has_words=self.record.has_words,
        )

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields so far, by name."""
        fields: dict[str, set[Kind]] = {}
        for name, kind in self.record.kinds:
            fields.setdefault(metadata_name(name), set()).add(Kind(kind))
        return fields

    def field_values(self, condition: Condition | None = None) -> list[FieldValues]:
        """The metadata fields, without values: Milvus does not group by fields in JSON."""
        del condition
        return [
            FieldValues(name, sorted(kind.value for kind in kinds), [], None, None)
            for name, kinds in sorted(self.fields().items())
        ]

    # Documents.

    def count(self, selection: Selection = EVERYTHING) -> int:
        """The number of documents, or of selected documents."""
        if selection.ids is None:
            return self.size(self.target.name, self.expression(selection.condition))
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
        if selection.ids is None:
            yield from self.pages(fields, condition)
        elif rows := self.named(selection.ids, fields, condition):
            yield rows

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        return {str(one.id): one for one in self._whole(self.named(ids, _WHOLE, FINISHED))}

    def scan(self, size: int = IDS_AT_ONCE) -> Iterator[list[Document]]:
        """All documents in insertion order, in lists of at most `size`."""
        for page in self.pages(_WHOLE, FINISHED):
            for start in range(0, len(page), size):
                yield self._whole(page[start : start + size])

    def stored_documents(self, ids: Sequence[str]) -> dict[str, StoredDocument]:
        """The records of documents to compare with, by id."""
        return {
            row["id"]: StoredDocument(
                row["document"], json.loads(row["title"]), row["metadata"], row["text_hash"]
            )
            for row in self.named(ids, ["title", "metadata", "text_hash"])
        }

    def passages_of(self, ids: Sequence[str]) -> dict[str, list[NewPassage]]:
        """The passages of documents, in order, by document id."""
        documents = self.named(ids, ["passages"])
        fields = NewPassage._fields
        rows = iter(self.by_id(self.base, passage_ids(documents), fields))
        return {
            document["id"]: [
                NewPassage(*(row[name] for name in fields))
                for row in islice(rows, document["passages"])
            ]
            for document in documents
        }

    def vectors_of_texts(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""
        vectors: TextVectors = {}
        for space in self.spaces() if self.record.last_document else ():
            collection = self.target.passages(space)
            rows = self.connection.listed(collection, "text_hash", hashes, ["passage"])
            passages = {row["text_hash"]: row["passage"] for row in rows}  # one for each text
            fields = ["text_hash", "vector"]
            for row in self.by_id(collection, list(passages.values()), fields):
                vectors[space.id, row["text_hash"]] = numpy.array(row["vector"], numpy.float32)
        return vectors

    def passages(self, space: Space, condition: Condition | None = None) -> Passages:
        """All passages with their vectors, or those whose documents match a condition."""
        check_searchable(space, self.spaces())
        matching = all_of(FINISHED, self.expression(condition))
        ids = [one for page in self.pages(["passages"], matching) for one in passage_ids(page)]
        columns = ["id", "document", "text", "vector"]
        rows = self.by_id(self.target.passages(space), ids, columns)
        vectors = numpy.array([row["vector"] for row in rows], numpy.float32)
        if space.dtype == "float16":  # copied vectors are rounded, which changes their length
            vectors /= numpy.linalg.norm(vectors, axis=1, keepdims=True)
        return Passages(
            document_ids=[row["id"] for row in rows],
            documents=numpy.array([row["document"] for row in rows], numpy.int64),
            passage_ids=numpy.array(ids, numpy.int64),
            texts=[row["text"] for row in rows],
            vectors=vectors.reshape(len(ids), space.dimension),
        )

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """Passage id, text and document id of passages above an id that have no vector."""
        found: list[int] = []
        for page in self.pages(["passages"], FINISHED, after=max(0, document_of(after) - 1)):
            ids = [passage for passage in passage_ids(page) if passage > after]
            held = self.connection.listed(self.target.passages(space), "passage", ids, [])
            found += sorted(set(ids).difference(row["passage"] for row in held))
            if len(found) >= limit:
                break
        listed = self.connection.listed(self.base, "passage", found[:limit], ["id", "text"])
        return sorted((row["passage"], row["text"], row["id"]) for row in listed)

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
    ) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query (fewer only when fewer match), best first."""
        check_searchable(space, self.spaces())
        lists = LISTS if self.record.index_kind == EXACT else SEARCHED_LISTS
        collection, condition = self.target.passages(space), self._condition(restriction)
        search = Search(self.connection, collection, VECTORS, condition, lists)
        return search.best(list(queries), k, per_document)

    def search_bm25(
        self,
        text: str,
        k: int,
        restriction: Restriction = NO_RESTRICTION,
        per_document: int = 1,
        phrases: Sequence[str] = (),
    ) -> list[ScoredPassage]:
        """The `k` best passages by Milvus' BM25, which knows no phrases, best first."""
        if not self.record.has_words:
            raise UnsupportedByStoreError(
                f"{self.target.address}: Milvus {self.connection.version} has no BM25, which "
                "milvus-lite and servers from 2.5 on have; search with --mode semantic"
            )
        search = Search(self.connection, self.base, WORDS, self._condition(restriction))
        return search.best([text], k, per_document)[0]

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of passages that occur in a text."""
        wanted = set(words(folded(text)))
        matched = {}
        for row in self.connection.listed(self.base, "passage", passage_ids, ["text"]):
            own = dict.fromkeys(words(folded(row["text"])))
            matched[row["passage"]] = [word for word in own if word in wanted]
        return matched

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        """The passages with these ids, as far as they exist."""
        columns = ["id", "start", "end", "text"]
        rows = list(self.connection.listed(self.base, "passage", passage_ids, columns))
        documents = self.named((row["id"] for row in rows), ["title", "metadata"])
        owners = {row["id"]: row for row in documents}
        return {
            row["passage"]: FoundPassage(
                Passage(row["passage"], row["id"], row["start"], row["end"], row["text"]),
                json.loads(owners[row["id"]]["metadata"]),
                json.loads(owners[row["id"]]["title"]),
            )
            for row in rows
            if row["id"] in owners
        }

    def _condition(self, restriction: Restriction) -> str:
        if restriction.required or restriction.excluded:
            raise UnsupportedByStoreError(
                "an index on Milvus requires no phrases and excludes no words; search it without "
                "--require and -word"
            )
        return self.expression(restriction.condition)

    def _whole(self, rows: Sequence[Row]) -> list[Document]:
        """Documents with their texts.

        Raises:
            IndexBusyError: one was written meanwhile.
        """
        parts = ["before", "text", "after"]
        passages = iter(self.by_id(self.base, passage_ids(rows), parts))
        whole = []
        for row in rows:
            own = islice(passages, row["passages"])
            text = "".join(passage[part] for passage in own for part in parts)
            if text_hash(text) != row["text_hash"]:
                raise self.changed()
            title, metadata = json.loads(row["title"]), json.loads(row["metadata"])
            whole.append(Document(row["id"], text, title, metadata))
        return whole

    def _counted_fields(self) -> list[Field]:
        """The fields of the present documents, with the most frequent kinds first."""
        counts = [
            (self.size(self.target.name, has_values(name, kind)), name, kind)
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
        """The collection of the first space, which has all passages."""
        return self.target.passages(self.record.spaces[0])

    def size(self, collection: str, condition: str = "") -> int:
        """The number of documents, passages or vectors that match a condition."""
        counted = all_of("document > 0", condition)
        [row] = self.connection.query(collection, counted, ["count(*)"])
        return int(row["count(*)"])

    def by_id(self, collection: str, ids: Sequence[int], fields: Iterable[str]) -> list[Row]:
        """Passages, or their vectors, in the order of their ids.

        Raises:
            IndexBusyError: some are missing.
        """
        listed = self.connection.listed(collection, "passage", ids, fields)
        rows = {row["passage"]: row for row in listed}
        try:
            return [rows[passage] for passage in ids]
        except KeyError:
            raise self.changed() from None

    def changed(self) -> IndexBusyError:
        """The error that rows do not belong together."""
        return IndexBusyError(
            f"{self.target.address} was written while it was read, or a command was killed; "
            "index the documents again, or see: semsearch verify --repair"
        )

    def pages(self, fields: Iterable[str], rest: str = "", after: int = 0) -> Iterator[list[Row]]:
        """Documents above a number, in the order of addition."""
        for start in range(after, self.record.last_document, PAGE):
            page = all_of(f"document > {start} and document <= {start + PAGE}", rest)
            if rows := self.connection.query(self.target.name, page, {"id", "document", *fields}):
                yield sorted(rows, key=lambda row: int(row["document"]))

    def named(self, ids: Iterable[str], fields: Iterable[str], rest: str = "") -> list[Row]:
        """The documents with these ids, in the order of addition."""
        wanted = {name for name in ids if name != RECORD_ID}
        rows = self.connection.listed(self.target.name, "id", wanted, {"document", *fields}, rest)
        return sorted(rows, key=lambda row: int(row["document"]))

    def expression(self, condition: Condition | None) -> str:
        """A condition as an expression of Milvus; empty for none."""
        return "" if condition is None else to_expression(condition, self._matching_texts)

    def _matching_texts(self, field: str, pattern: re.Pattern[str]) -> list[str]:
        """The distinct texts of a field that match a pattern, of all documents."""
        texts = {
            text
            for rows in self.pages(["fields"])
            for row in rows
            for kind in ("text", "written")
            for text in row["fields"].get(field, {}).get(kind, [])
        }
        return sorted(text for text in texts if pattern.fullmatch(text))
