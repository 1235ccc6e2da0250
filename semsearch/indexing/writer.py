"""Writing an index: documents, spaces, maintenance."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

from semsearch.corpus.documents import DocumentReader
from semsearch.corpus.files import FileState, FolderFiles
from semsearch.corpus.frames import Texts, documents_of
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    FilterError,
    SemsearchError,
    SpaceError,
    check_text,
    check_texts,
    raise_error,
)
from semsearch.indexing.batch import BatchWriter, Split, Summary, complete_space, split_texts
from semsearch.indexing.changes import SeenDocuments
from semsearch.indexing.creation import check_encoders
from semsearch.indexing.files import FileMemory, ids_of_file
from semsearch.indexing.pool import EncoderPool, Spaces
from semsearch.indexing.removal import (
    Allowance,
    check_removal,
    named_documents,
    planned_removal,
    unseen_documents,
)
from semsearch.protocols import Encoder
from semsearch.records import BUILT_IN_FIELDS, Where, metadata_field, metadata_name
from semsearch.storage.interface import Fault, Selection, Settings, Writer
from semsearch.storage.spaces import Space, find_space, warn_of_cut_passages
from semsearch.storage.words import language
from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)


class IndexWriter:
    """Adds and removes documents, and maintains an index. `Index.writer` returns one.

    >>> from semsearch import Index
    >>> with Index.create("notes", "hashing") as index, index.writer() as writer:
    ...     _ = writer.upsert(["The cat dozed.", "Interest rates rose."])
    ...     writer.sync(["The cat dozed.", "The dog barked."]).removed
    1

    One thread at a time can use it. Encoders are loaded to add documents, and to encode stored
    passages that lack vectors.

    Args:
        store: the writer of the store.
        encoder_of: returns the encoder of a space, or raises.
        memory: the files that were read from folders.
        pool_for: returns the pool that encodes for some spaces.
        split: splits documents; None for passages that the first encoder reads whole.
        on_bad_row: called with the error of each document that cannot be indexed; the default
            raises it.
        on_batch: called after each commit with a summary of the run so far.
    """

    def __init__(
        self,
        store: Writer,
        encoder_of: Callable[[Space], Encoder],
        memory: FileMemory,
        pool_for: Callable[[Spaces], EncoderPool],
        *,
        split: Split | None = None,
        on_bad_row: Callable[[BadRowError], None] = raise_error,
        on_batch: Callable[[Summary], None] = lambda summary: None,
    ) -> None:
        self._store = store
        self._pool_for = pool_for
        self._split = split
        self._memory = memory
        self._encoder_of = encoder_of
        self._on_bad_row = on_bad_row
        self._on_batch = on_batch

    def upsert(self, corpus: Texts) -> Summary:
        """Add new documents and update changed ones; keep all other documents of the index.

        Each batch is one transaction; committed batches remain if a later one fails. Files in the
        folders of a `Corpus` are not opened if they are unchanged since the index read them; their
        documents count as unchanged. A `Corpus` is read as in the last run where its arguments do
        not say otherwise.

        Raises:
            ArgumentError: the corpus contains other items than texts, dicts and documents, or a
                `Corpus` names another id column than in the last run.
            BadRowError: a document cannot be indexed, and `on_bad_row` raised it.
            SpaceError: the spec of a space now names another model.
        """
        started = time.perf_counter()
        with closing(SeenDocuments()) as seen:
            summary, files = self._upsert(documents_of(corpus, on_bad_row=self._on_bad_row), seen)
        return self._finished(summary, files, started)

    def _upsert(
        self, documents: DocumentReader, seen: SeenDocuments
    ) -> tuple[Summary, dict[str, FileState]]:
        """Write documents; also returns the files of folders to remember."""
        started = time.perf_counter()
        summary = Summary()
        files, readings = documents.files, documents.readings
        files.known = self._memory.known
        settings = self._settings()
        readings.earlier = readings.earlier or dict(settings.corpora)
        encoders = self._encoders()

        refused: list[BadRowError] = []

        def on_bad_row(error: BadRowError) -> None:
            self._on_bad_row(error)
            refused.append(error)

        with self._pool_for(encoders) as pool:
            split = self._split or partial(split_texts, encoders[0][1], settings.max_tokens)
            writer = BatchWriter(self._store, encoders, split, pool, seen, on_bad_row)
            with closing(writer.write_all(documents)) as batches:
                for batch in batches:
                    corpora = {**settings.corpora, **readings.used}
                    if corpora != settings.corpora:
                        settings = settings._replace(corpora=corpora)
                        self._store.configure(settings)
                    summary = replace(summary + batch, seconds=time.perf_counter() - started)
                    self._on_batch(summary)
            summary += Summary(unchanged=self._see_unchanged(files, seen))
            self._complete(encoders, pool)
        # If rows were refused, files are read again next time, to report these rows again.
        return summary, {} if refused else files.to_remember

    def _see_unchanged(self, files: FolderFiles, seen: SeenDocuments) -> int:
        """Mark the documents of unchanged files as seen; returns their number."""
        count = 0
        for name in files.unchanged:
            with self._store.read() as reader:
                ids = ids_of_file(reader, name)
            seen.add_ids(ids)
            count += len(ids)
        return count

    def sync(self, corpus: Texts, *, allow_removals: Allowance = False) -> Summary:
        """Make the index equal to the corpus: `upsert`, then remove all other documents.

        If reading the corpus fails, nothing is removed. Documents whose row was skipped as bad
        stay; if the ids of some skipped rows are unknown, no document is removed.

        Args:
            corpus: all documents that the index should contain.
            allow_removals: allow the removal of more than ten documents and a tenth of the index,
                or of any if the corpus is empty. Documents that this sync adds do not count as the
                index. A function is called with the `Removal` and returns whether to continue.

        Raises:
            ArgumentError: the corpus contains other items than texts, dicts and documents.
            RemovalError: more would be removed than is allowed; additions and changes remain.
            BadRowError: a document cannot be indexed, and `on_bad_row` raised it.
            SpaceError: the spec of a space now names another model.
        """
        started = time.perf_counter()
        documents = documents_of(corpus, on_bad_row=self._on_bad_row)
        with self._store.read() as reader:
            total = reader.count()
        with closing(SeenDocuments()) as seen:
            summary, files = self._upsert(documents, seen)
            with self._store.read() as reader:
                removal, unseen = unseen_documents(reader, seen, documents.skipped, total)
        if removal.kept:
            logger.warning("%s", removal.why_kept())
        check_removal(removal, allow_removals, corpus_is_empty=not summary.documents)
        removed = self._store.remove(Selection(unseen)) if unseen else 0
        summary = replace(summary, removed=removed, kept=removal.kept)
        return self._finished(summary, files, started)

    def _finished(
        self, summary: Summary, files: Mapping[str, FileState], started: float
    ) -> Summary:
        """Remember the files that were read, and update the vector indexes."""
        self._memory.remember(files)
        self._store.optimise()
        return replace(summary, seconds=time.perf_counter() - started)

    def delete(
        self,
        ids: Sequence[str] | None = None,
        where: Where | None = None,
        *,
        allow_removals: Allowance = True,
    ) -> int:
        """Remove documents by their ids, by a filter, or by both.

        They are no longer found; `compact` removes their remains from the files.

        Args:
            ids: the ids of documents.
            where: a filter; with ids, only documents that match both are removed.
            allow_removals: allow the removal of more than ten documents and a tenth of the index;
                True by default. A function is called with the `Removal` and returns whether to
                continue.

        Returns:
            The number of documents removed.

        Raises:
            ArgumentError: neither is given, or the index has no document with such an id; nothing
                is removed.
            FilterError: the filter is invalid.
            RemovalError: more would be removed than is allowed.
        """
        if ids is not None:
            ids = check_texts("ids", ids)
        with self._store.read() as reader:
            named = named_documents(reader, ids, where)
            removal = planned_removal(reader, named)
        check_removal(removal, allow_removals)
        removed = self._store.remove(named)
        self._store.optimise()
        return removed

    def add_space(self, encoder: Encoder) -> Space:
        """Encode the stored passages into another space; no corpus is needed.

        If it is interrupted, the next `add_space` with the same encoder, or the next `upsert`,
        continues; until then the space cannot be searched.

        Raises:
            ArgumentError: `encoder` is not an encoder.
        """
        check_encoders([encoder])
        spaces = {space.fingerprint: space for space in self._spaces()}
        space = spaces.get(encoder.fingerprint) or self._store.add_space(encoder)
        warn_of_cut_passages(encoder, self._settings().max_tokens)
        to_fill = [(space, encoder)]
        with self._pool_for(to_fill) as pool:
            self._complete(to_fill, pool)
        self._store.optimise()
        return find_space(self._spaces(), space.name)

    def drop_space(self, name: str) -> None:
        """Remove a space with its vectors.

        Raises:
            SpaceError: there is no space with this name, or it is the only one.
        """
        check_text("the name of a space", name)
        spaces = self._spaces()
        space = find_space(spaces, name)
        if len(spaces) == 1:
            raise SpaceError(f"'{name}' is the only space of this index; add another space first")
        self._store.drop_space(space)

    def set_index_type(self, kind: str | None = None, *, recall: float | None = None) -> None:
        """Choose the type of vector index, effective from the next change or `optimise`.

        Arguments that are None stay unchanged; a new index has ``auto`` and 0.98.

        Args:
            kind: ``flat`` compares all vectors with the query; ``ivf`` finds most of the nearest
                vectors faster, from 1,000 passages; ``auto`` is flat for up to 50,000 passages
                (with 384 dimensions) and ivf for more.
            recall: the target share of the 10 nearest vectors to find; `Index.info` reports the
                recall measured when the vectors were written, with 95 % confidence.

        Raises:
            ArgumentError: the kind or the recall is invalid.
        """
        settings = self._settings()
        own = settings.index_type
        wanted = IndexType(kind or own.kind, own.recall if recall is None else recall)
        self._store.configure(settings._replace(index_type=wanted.checked()))

    def index_field(self, name: str) -> None:
        """Index a metadata field for fast filters.

        Without an index, a selective filter is tested on every document. The index serves
        comparisons, ``in`` and ``between`` of fields that hold no lists.

        Args:
            name: the field as written in filters: ``year``, or ``metadata.id``. ``id`` and
                ``title`` of documents always have an index.

        Raises:
            ArgumentError: no document has such a field.
        """
        field = metadata_name(check_text("the field", name))
        with self._store.read() as state:
            known = [metadata_field(one) for one, kinds in sorted(state.fields().items()) if kinds]
        if name in BUILT_IN_FIELDS:
            raise ArgumentError(f"'{name}' always has an index")
        if metadata_field(field) not in known:
            raise FilterError(f"no field '{name}' (fields: {', '.join(known) or 'none'})")
        self._store.index_field(field)

    def set_stemmer(self, name: str) -> None:
        """Choose the stemmer and the stop words of BM25; its words are indexed again.

        Args:
            name: a Snowball stemmer (``english``, ``german``, …), or ``none`` for no stemming.
                The default is the Porter stemmer and stop words for English. Stop words
                are removed from queries only; not every language has a list.

        Raises:
            ArgumentError: there is no such stemmer.
            MissingExtraError: the extra ``languages`` is not installed.
        """
        self._store.configure(self._settings()._replace(language=language(name)))

    def optimise(self) -> None:
        """Update the vector indexes if they are out of date."""
        self._store.optimise()

    def compact(self) -> None:
        """Rewrite all files without deleted documents.

        The record of files read from folders is deleted, too: they are read again, not encoded.

        Raises:
            IndexBusyError: a reader, in this process or another, uses an older state, which the
                log must keep.
        """
        self._memory.forget()
        self._store.compact()

    def verify(self) -> list[Fault]:
        """Check the index and return all faults; see `semsearch verify`."""
        return self._store.verify()

    def repair(self) -> None:
        """Rebuild everything derived: words, snapshots, SQLite's indexes, missing vectors.

        Raises:
            EncoderError: vectors are missing or damaged, and their encoder cannot be loaded or
                returns none; all else is repaired.
            SpaceError: the same, where the spec of the space now names another model.
        """
        self._store.repair()
        failures: list[SemsearchError] = []
        for space in self._spaces():
            with self._store.read() as reader:
                lacking = reader.passages_without_vector(space, 0, 1)
            if not lacking:
                self._store.complete(space)
                continue
            try:
                spaces = [(space._replace(complete=False), self._encoder_of(space))]
                with self._pool_for(spaces) as pool:
                    self._complete(spaces, pool)
            except SemsearchError as error:
                failures.append(error)
        self._store.optimise()
        if failures:
            raise failures[0]

    def _settings(self) -> Settings:
        with self._store.read() as reader:
            return reader.settings()

    def _spaces(self) -> list[Space]:
        with self._store.read() as reader:
            return reader.spaces()

    def _encoders(self) -> list[tuple[Space, Encoder]]:
        return [(space, self._encoder_of(space)) for space in self._spaces()]

    def _complete(self, spaces: Spaces, pool: EncoderPool) -> None:
        for space, encoder in spaces:
            if not space.complete:
                for encoded in complete_space(self._store, space, pool):
                    self._on_batch(encoded)
            described = encoder.description()
            if described.get("precision") == "int8" != space.description.get("precision"):
                self._store.describe(space, described)  # the first passages allowed it
