"""Reading an index on Milvus."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy

from semsearch.analysis.forms import folded, words
from semsearch.errors import UnsupportedByStoreError
from semsearch.filters import Condition
from semsearch.protocols import Matrix
from semsearch.records import Document, Kind, Passage
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
)
from semsearch.storage.milvus.connection import Row
from semsearch.storage.milvus.rows import Rows, passage_ids
from semsearch.storage.milvus.schema import FORMAT_VERSION, WORDS
from semsearch.storage.milvus.search import Search
from semsearch.storage.spaces import Space, check_searchable
from semsearch.vector_indexes import IndexType

_WHOLE = ("id", "title", "metadata", "ending", "first", "passages")


class MilvusReader(Rows):
    """What is written by now; see `semsearch.storage.interface.Reader`.

    Milvus keeps no older states: what is written while this one is read can be read, too.

    Args:
        connection: to Milvus.
        record: of the index, if they are known.
    """

    def settings(self) -> Settings:
        """The settings of the index."""
        return Settings(
            max_tokens=self.record.max_tokens,
            index_type=IndexType(self.record.index_type),
            unfinished_sync=self.record.unfinished_sync,
            corpora=self.record.corpora,
        )

    def spaces(self) -> list[Space]:
        """The embedding spaces, oldest first."""
        return list(self.record.spaces)

    def info(self) -> IndexInfo:
        """The contents of the index."""
        return IndexInfo(
            path=cast("Path", self.target.address),
            format=FORMAT_VERSION,
            documents=self.count(),
            passages=self.size(self.target.passages),
            fields=[Field(name, dict(kinds)) for name, kinds in self.record.fields.items()],
            spaces=self.spaces(),
            snapshots={},
            files={},
            language=None,
            indexed_fields=[],
            has_words=self.record.has_words,
        )

    def fields(self) -> dict[str, set[Kind]]:
        """The kinds of values of metadata fields, by name."""
        return {
            name: {Kind(kind.rpartition(" ")[2]) for kind in kinds}
            for name, kinds in self.record.fields.items()
        }

    def field_values(self) -> list[FieldValues]:
        """The metadata fields, without values: Milvus does not group by fields in JSON."""
        return [
            FieldValues(name, sorted(kind.value for kind in kinds), [], None, None)
            for name, kinds in sorted(self.fields().items())
        ]

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
            if rows:
                yield rows

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents with these ids, as they were added."""
        return {str(one.id): one for one in self._whole(self.named(ids, _WHOLE))}

    def scan(self, size: int = 256) -> Iterator[list[Document]]:
        """All documents in insertion order, in lists of at most `size`."""
        for page in self.pages(self.target.name, _WHOLE, "passages > 0"):
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

    def vectors_of_texts(self, hashes: Sequence[str]) -> TextVectors:
        """The stored vectors of texts, whatever their documents."""
        if not self.record.last_passage:
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
            passage_ids=numpy.array(ids, numpy.int64),
            texts=[row["text"] for row in rows],
            vectors=self._vectors(space, ids),
        )

    def passages_without_vector(
        self, space: Space, after: int, limit: int
    ) -> list[tuple[int, str, str]]:
        """Passage id, text and document id of passages above an id that have no vector."""
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
    ) -> list[list[ScoredPassage]]:
        """The `k` best passages of each query (fewer only when fewer match), best first."""
        check_searchable(space, self.spaces())
        search = Search(self, self.target.vectors(space), self._condition(restriction))
        return search.best(list(queries), k, per_document)

    def describe_search(self, space: Space, restriction: Restriction = NO_RESTRICTION) -> str:
        """A description of how `search_vectors` would search."""
        kind = self.record.index_kind
        exact = "exact" if kind == "FLAT" else "approximate"
        filtered = "" if restriction.condition is None else ", with the filter"
        return f"{exact} ({kind}), by Milvus {self.connection.version}{filtered}"

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
                f"{self.target.address} has no BM25, which milvus-lite and Milvus from "
                f"2.5 on have (here: {self.connection.version}); search it with --mode semantic"
            )
        search = Search(self, self.target.passages, self._condition(restriction), WORDS)
        return search.best([text], k, per_document)[0]

    def matched_words(self, text: str, passage_ids: Sequence[int]) -> dict[int, list[str]]:
        """The words of passages that occur in a text."""
        wanted = set(words(folded(text)))
        rows = self.listed(self.target.passages, "passage", passage_ids, ["text"])
        return {
            row["passage"]: [
                word for word in dict.fromkeys(words(folded(row["text"]))) if word in wanted
            ]
            for row in rows
        }

    def fetch(self, passage_ids: Sequence[int]) -> dict[int, FoundPassage]:
        """The passages with these ids, as far as they exist."""
        columns = ["id", "start", "end", "text"]
        rows = list(self.listed(self.target.passages, "passage", passage_ids, columns))
        documents = self.named((row["id"] for row in rows), ["title", "metadata"])
        owners = {row["id"]: row for row in documents}
        found = {}
        for row in rows:
            if owner := owners.get(row["id"]):
                passage = Passage(row["passage"], row["id"], row["start"], row["end"], row["text"])
                metadata, title = json.loads(owner["metadata"]), json.loads(owner["title"])
                found[passage.id] = FoundPassage(passage, metadata, title)
        return found

    def _vectors(self, space: Space, passages: Sequence[int]) -> Matrix:
        """The vectors of passages, shape (len(passages), dimension)."""
        rows = self.passages_by_id(self.target.vectors(space), passages, ["vector"])
        matrix = numpy.array([rows[passage]["vector"] for passage in passages], numpy.float32)
        if space.dtype == "float16":  # copied vectors are rounded, which changes their length
            matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
        return matrix.reshape(len(passages), space.dimension)

    def _condition(self, restriction: Restriction) -> str:
        if restriction.required or restriction.excluded:
            raise UnsupportedByStoreError(
                f"{self.target.address}: an index on Milvus requires no phrases and "
                "excludes no words; search without --require and -word"
            )
        return self.expression(restriction.condition)

    def _whole(self, rows: Iterable[Row]) -> list[Document]:
        """Documents; without those whose passages are not yet written."""
        rows = [row for row in rows if row["passages"]]
        passages = self.passages_by_id(self.target.passages, passage_ids(rows), ["before", "text"])
        whole = []
        for row in rows:
            parts = (passages[passage] for passage in passage_ids([row]))
            text = "".join(part["before"] + part["text"] for part in parts) + row["ending"]
            title, metadata = json.loads(row["title"]), json.loads(row["metadata"])
            whole.append(Document(row["id"], text, title, metadata))
        return whole
