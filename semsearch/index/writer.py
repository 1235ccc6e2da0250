"""Writing an index: documents in and out, spaces, upkeep."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from semsearch.analysis import language
from semsearch.arguments import check_text, check_texts, shown
from semsearch.corpus.documents import DocumentReader, SkippedRows
from semsearch.corpus.files import FileState, FolderFiles
from semsearch.errors import ArgumentError, BadRowError, FieldNotFoundError, SpaceError, refuse
from semsearch.filters import BUILT_IN_FIELDS, metadata_field, metadata_name, qualified
from semsearch.index.batch import BatchResult, BatchWriter
from semsearch.index.completion import complete_space
from semsearch.index.files import FileMemory, ids_of_file
from semsearch.index.plan import Change
from semsearch.index.removal_plan import (
    Allowance,
    check_removal,
    named_documents,
    planned_removal,
    unseen_documents,
)
from semsearch.index.workers import LocalWorkers, Spaces, Workers
from semsearch.protocols import Encoder
from semsearch.records import Document
from semsearch.stores.protocol import Fault, Seen, Selection, StoreWriter
from semsearch.stores.space import Space, find_space, warn_of_cut_passages
from semsearch.vector_indexes import IndexType

logger = logging.getLogger(__name__)

_Files = dict[str, FileState]


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run has done and committed."""

    added: int = 0
    changed: int = 0
    metadata_changed: int = 0
    unchanged: int = 0
    removed: int = 0
    kept: int = 0  #: documents that the corpus lacks, and that a skipped row may hold
    chunks: int = 0  #: passages written
    encoded: int = 0  #: texts that went through an encoder
    seconds: float = 0.0
    nodes: Counter[str] = field(default_factory=Counter)  #: by the node of a cluster: texts encoded

    @property
    def documents(self) -> int:
        """How many documents of the corpus are in the index now."""
        return self.added + self.changed + self.metadata_changed + self.unchanged

    def plus(self, batch: BatchResult, seconds: float) -> Summary:
        """The same after another batch."""
        return replace(
            self,
            added=self.added + batch.changes[Change.ADDED],
            changed=self.changed + batch.changes[Change.CHANGED],
            metadata_changed=self.metadata_changed + batch.changes[Change.METADATA_CHANGED],
            unchanged=self.unchanged + batch.changes[Change.UNCHANGED],
            chunks=self.chunks + batch.chunks,
            encoded=self.encoded + batch.encoded,
            seconds=seconds,
            nodes=self.nodes + batch.nodes,
        )


class IndexWriter:
    """Puts documents into an index and takes them out. `Index.writer` makes one.

    Encoders are loaded when there is something to encode, not before.

    Args:
        store: where documents go.
        encoder_of: gives the encoder of a space, or refuses.
        workers_for: makes what cuts and encodes for some spaces.
        memory: of the files that were read from folders.
        on_bad_row: called with the error of each document that cannot be used; the default
            raises it.
        on_batch: called after each commit with what the run has done so far.
    """

    def __init__(
        self,
        store: StoreWriter,
        encoder_of: Callable[[Space], Encoder],
        *,
        memory: FileMemory,
        workers_for: Callable[[Spaces], Workers] = LocalWorkers,
        on_bad_row: Callable[[BadRowError], None] = refuse,
        on_batch: Callable[[Summary], None] = lambda summary: None,
    ) -> None:
        self._store = store
        self._workers_for = workers_for
        self._memory = memory
        self._encoder_of = encoder_of
        self._on_bad_row = on_bad_row
        self._on_batch = on_batch

    def upsert(self, corpus: Iterable[Document]) -> Summary:
        """Add new documents, renew changed ones, leave the others that the index has.

        Each batch is committed whole; what was committed stays, whatever happens next. Of a
        `Corpus`, files of folders are not opened that are unchanged since the index has read them;
        their documents count as unchanged.

        Raises:
            ArgumentError: the corpus holds something else than documents.
            BadRowError: a document cannot be used, and `on_bad_row` raised it.
            SpaceError: a space's model has become another one.
        """
        summary, files = self._upsert(_iterated(corpus))
        self._memory.remember(files)
        return summary

    def _upsert(self, documents: Iterator[Document]) -> tuple[Summary, _Files]:
        """`upsert`, and the files of folders that are to be remembered."""
        started = time.perf_counter()
        summary = Summary()
        files = documents.files if isinstance(documents, DocumentReader) else FolderFiles()
        files.known = files.known or self._memory.known
        with self._store.state() as state:
            state.begin_run()
            max_tokens = state.max_tokens
        encoders = self._encoders()
        if not encoders:
            raise SpaceError(
                "the index has no embedding space: its creation was interrupted; "
                "name the encoder once more"
            )

        def on_bad_row(error: BadRowError) -> None:
            self._on_bad_row(error)
            refused.append(error)

        refused: list[BadRowError] = []
        with self._workers_for(encoders) as workers:
            writer = BatchWriter(self._store, encoders, workers, max_tokens, on_bad_row)
            with closing(writer.write_all(_checked(documents))) as batches:
                for batch in batches:
                    summary = summary.plus(batch, time.perf_counter() - started)
                    self._on_batch(summary)
            summary = replace(summary, unchanged=summary.unchanged + self._see_unchanged(files))
            self._complete(encoders, workers)
        self._store.optimise()
        summary = replace(summary, seconds=time.perf_counter() - started)
        # What was refused is read again, and refused aloud again.
        return summary, {} if refused else files.read | files.unchanged

    def _see_unchanged(self, files: FolderFiles) -> int:
        """Mark the documents of files that were not opened as seen; returns how many they are."""
        count = 0
        for name in files.unchanged:
            with self._store.state() as state:
                ids = ids_of_file(state, name)
                state.mark_seen({one: Seen("", 0) for one in ids})
            count += len(ids)
        return count

    def sync(
        self,
        corpus: Iterable[Document],
        *,
        skipped: SkippedRows | None = None,
        allow_removals: Allowance = False,
    ) -> Summary:
        """Make the index equal to the corpus: `upsert`, then remove what the corpus lacks.

        A corpus that breaks off with an error removes nothing. A document whose row was skipped
        as bad stays; while it is not known which documents the skipped rows hold, none is removed.

        Args:
            corpus: all documents that the index shall have.
            skipped: the bad rows that reading the corpus skipped; what a `Corpus` has skipped is
                known without it.
            allow_removals: whether more than ten documents and a tenth of those that the index
                held before may be removed, or any when the corpus is empty. A function is called
                with the `Removal` and returns whether to go on.

        Raises:
            RemovalError: more would be removed than is allowed; what was added and changed stays.
            BadRowError: a document cannot be used, and `on_bad_row` raised it.
            SpaceError: a space's model has become another one.
        """
        started = time.perf_counter()
        documents_read = _iterated(corpus)
        if skipped is None:
            reader = documents_read if isinstance(documents_read, DocumentReader) else None
            skipped = reader.skipped if reader else SkippedRows()
        summary, files = self._upsert(documents_read)
        with self._store.state() as state:
            removal = unseen_documents(state, skipped, summary.added)
        if removal.kept:
            logger.warning("%s", removal.why_kept())
        check_removal(removal, allow_removals, corpus_is_empty=not summary.documents)
        removed = self._store.remove(Selection(unseen=True)) if removal.documents else 0
        self._memory.remember(files)
        self._store.optimise()
        seconds = time.perf_counter() - started
        return replace(summary, removed=removed, kept=removal.kept, seconds=seconds)

    def delete(
        self,
        ids: Sequence[str] | None = None,
        where: str | None = None,
        *,
        allow_removals: Allowance = True,
    ) -> int:
        """Remove documents by their ids, by a filter, or by both at once.

        They are found no more from then on; what stays of them in the files goes with `compact`.

        Args:
            ids: their ids.
            where: a filter that they meet.
            allow_removals: whether more than ten documents and a tenth of the index may be
                removed: by default they may, for the caller names them. A function is called
                with the `Removal` and returns whether to go on.

        Returns:
            How many were removed.

        Raises:
            ArgumentError: neither is given, or the index has no document of such an id; then
                nothing is removed.
            FilterError: the filter cannot be used.
            RemovalError: more would be removed than is allowed.
        """
        if ids is not None:
            ids = check_texts("ids", ids)
        with self._store.state() as state:
            named = named_documents(state, ids, where)
            removal = planned_removal(state, named)
        check_removal(removal, allow_removals)
        return self._store.remove(named)

    def add_space(self, encoder: Encoder, dtype: str | None = None) -> Space:
        """Encode the stored passages into a further space; no corpus is needed.

        When it is interrupted, the next `add_space` of the same encoder, or the next `upsert`, goes
        on from there; until then the space cannot be searched.

        Raises:
            ArgumentError: what is given is no encoder, or no type that vectors are stored in.
            SpaceError: the encoder's space is there already and stores another type.
        """
        if not hasattr(encoder, "encode_documents"):
            raise ArgumentError(
                f"a space is made by an encoder (load_encoder returns one), not {shown(encoder)}"
            )
        with self._store.state() as state:
            spaces = {space.fingerprint: space for space in state.spaces()}
            max_tokens = state.max_tokens
        space = spaces.get(encoder.fingerprint) or self._store.add_space(encoder, dtype)
        space.check_dtype(dtype)
        warn_of_cut_passages(encoder, max_tokens)
        spaces_to_fill = [(space, encoder)]
        with self._workers_for(spaces_to_fill) as workers:
            self._complete(spaces_to_fill, workers)
        self._store.optimise()
        return find_space(self._spaces(), space.name)

    def drop_space(self, name: str) -> None:
        """Remove a space with its vectors.

        Raises:
            SpaceError: there is none of that name, or it is the only one.
        """
        check_text("the name of a space", name)
        spaces = self._spaces()
        space = find_space(spaces, name)
        if len(spaces) == 1:
            raise SpaceError(f"'{name}' is the only space of this index")
        self._store.drop_space(space)

    def set_index_type(
        self,
        kind: str | None = None,
        *,
        recall: float | None = None,
        memory: int | None = None,
    ) -> None:
        """Choose how vectors are searched, from the next change of the index or `optimise` on.

        What is None stays as it is; a new index has ``auto``, 0.98 and no limit.

        Args:
            kind: ``flat`` compares all vectors with the query; ``ivf`` and ``hnsw`` find most of
                the nearest ones sooner; ``auto`` is flat for up to 50,000 passages (of 384
                numbers), and ivf for more. A FAISS factory string of either family is taken as it
                is, such as ``IVF4096,SQ8``.
            recall: the share of the 10 nearest that search is to find; what it finds, measured
                when the vectors are written, is in `Index.info`.
            memory: how many bytes the codes may take that ``ivf`` searches, beside the vectors,
                which are read from the disk.

        Raises:
            ArgumentError: there is no such kind, or no such recall.
        """
        with self._store.state() as state:
            own = state.index_type
        wanted = IndexType(
            own.kind if kind is None else kind,
            own.recall if recall is None else recall,
            own.memory if memory is None else memory,
        )
        self._store.choose_index_type(wanted.checked())

    def index_field(self, name: str) -> None:
        """Let filters find documents by the values of a metadata field.

        Without an index, a filter that few documents meet is tested on each document. The index
        serves comparisons, ``in`` and ``between`` with texts of up to 63 characters, numbers and
        booleans.

        Args:
            name: the field as filters call it: ``year``, or ``metadata.id``. ``id`` and ``title``
                of documents always have an index.

        Raises:
            ArgumentError: no document has such a field.
        """
        field = qualified(check_text("the field", name))
        with self._store.state() as state:
            known = [metadata_field(one) for one in state.field_names()]
        if field in BUILT_IN_FIELDS:
            raise ArgumentError(f"'{field}' always has an index")
        if field not in known:
            raise FieldNotFoundError(f"no field '{name}' (fields: {', '.join(known) or 'none'})")
        self._store.index_field(metadata_name(field))

    def set_language(self, name: str) -> None:
        """Choose the stemmer and the stop words of BM25.

        The words of all passages are indexed again; vectors stay as they are.

        Args:
            name: a Snowball stemmer (``english``, ``german``, …), or ``none`` for no stemming.
                The default is the Porter stemmer for English, without stop words. Stop words
                are removed from queries only; not every language has a list.

        Raises:
            ArgumentError: there is no such stemmer.
            MissingExtraError: the extra ``languages`` is not installed.
        """
        self._store.set_language(language(name))

    def optimise(self) -> None:
        """Write the vectors as they are searched fastest, if they are not yet."""
        self._store.optimise()

    def compact(self) -> None:
        """Make deletion real: rewrite all files without what was deleted.

        Which files of folders were read is forgotten, too: they are read again, not encoded.

        Raises:
            IndexBusyError: another process reads an older state, which the log must keep.
        """
        self._memory.forget()
        self._store.compact()

    def verify(self) -> list[Fault]:
        """All that is wrong with the index; see `semsearch verify`."""
        return self._store.verify()

    def repair(self) -> None:
        """Rebuild all that can be derived: words, snapshots, SQLite's indexes, lost vectors."""
        encoders = self._encoders()
        self._store.repair()
        with self._workers_for(encoders) as workers:
            for space, _ in encoders:
                complete_space(self._store, space, workers)
        self._store.optimise(thoroughly=True)

    def _spaces(self) -> list[Space]:
        with self._store.state() as state:
            return state.spaces()

    def _encoders(self) -> list[tuple[Space, Encoder]]:
        return [(space, self._encoder_of(space)) for space in self._spaces()]

    def _complete(self, spaces: Spaces, workers: Workers) -> None:
        for space, _ in spaces:
            if not space.complete:
                started = time.perf_counter()

                def tell(nodes: Counter[str], started: float = started) -> None:
                    seconds = time.perf_counter() - started
                    total = nodes.total()
                    del nodes[""]  # this process
                    self._on_batch(Summary(encoded=total, seconds=seconds, nodes=nodes))

                complete_space(self._store, space, workers, tell)


def _iterated(corpus: Iterable[Document]) -> Iterator[Document]:
    if isinstance(corpus, (str, bytes, Mapping, type)) or not isinstance(corpus, Iterable):
        raise ArgumentError(f"a corpus is a list of documents, not {shown(corpus)}")
    return iter(corpus)


def _checked(corpus: Iterable[Document]) -> Iterator[Document]:
    for place, document in enumerate(corpus):
        if not isinstance(document, Document):
            raise ArgumentError(f"item {place} is no Document but {shown(document)}")
        yield document
