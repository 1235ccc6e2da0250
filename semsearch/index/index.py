"""An index directory, as its users see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from sqlalchemy import Connection, func, select

from semsearch.encoders import DEFAULT_ENCODER, load_encoder
from semsearch.encoders.precision import Precision
from semsearch.errors import (
    ArgumentError,
    BadRowError,
    IndexNotFoundError,
    SpaceError,
    refuse,
)
from semsearch.index.folding import remove_leftovers
from semsearch.index.passages import Passages, read_passages
from semsearch.index.schema import FORMAT_VERSION, chunks, documents
from semsearch.index.search import field_names
from semsearch.index.snapshot import SnapshotRecord
from semsearch.index.spaces import (
    Space,
    add_space,
    all_spaces,
    find_space,
    warn_of_cut_passages,
)
from semsearch.index.store import Store, closed_on_error, put_setting
from semsearch.index.view import snapshot_record
from semsearch.protocols import Encoder
from semsearch.records import Document

if TYPE_CHECKING:
    import pandas

    from semsearch.index.writer import IndexWriter, Summary

__all__ = ["Index", "IndexInfo"]


class IndexInfo(NamedTuple):
    """What an index holds."""

    path: Path
    format: int
    documents: int
    chunks: int
    fields: list[str]
    spaces: list[Space]
    snapshots: dict[str, SnapshotRecord]  #: by the name of their space
    files: dict[str, int]  #: name → bytes


class Index:
    """A directory of documents, their passages and their vectors.

    Open one with `Index.open` or `Index.create`; close it when done, or use it in a ``with``.

    Args:
        store: its database.
        encoders: encoders at hand. A space whose fingerprint one of them has uses it; the others
            are loaded by their spec when they are needed.
    """

    def __init__(self, store: Store, encoders: Iterable[Encoder] = ()) -> None:
        self._store = store
        self._encoders = {encoder.fingerprint: encoder for encoder in encoders}

    @classmethod
    def open(cls, path: str | Path, encoders: Iterable[Encoder] = ()) -> Self:
        """The index in a directory.

        Raises:
            IndexNotFoundError: there is none.
            IndexFormatError: the directory is something else, or of a newer format.
        """
        return cls(Store(Path(path)), encoders)

    @classmethod
    def create(
        cls,
        path: str | Path,
        encoders: Sequence[str | Encoder] | None = None,
        *,
        dtype: str = "float32",
        precision: str | None = None,
    ) -> Self:
        """The index in a directory, made if it is not there yet.

        Args:
            path: an index, an empty directory, or none yet.
            encoders: specs or encoders, one for each embedding space; None takes those of the
                index, or ``minilm`` for a new one. The first one's length decides how long texts
                are cut.
            dtype: how a new index keeps vectors: ``float32``, or ``float16`` in half the space.
            precision: in which numbers encoders that are named by a spec compute: ``auto``,
                ``fp32``, ``bf16`` or ``int8``; None is ``auto`` for a new index, and for an old
                one what it was made with.

        Raises:
            IndexFormatError: the directory holds other things.
            SpaceError: the index is there already and has other spaces.
        """
        if encoders is None:
            encoders = _specs(Path(path))
            if encoders and precision is None:
                return cls.open(path)
            encoders = encoders or [DEFAULT_ENCODER]
        if not encoders:
            raise ArgumentError("an index needs at least one encoder")
        loaded = [
            load_encoder(item, precision=precision or "auto") if isinstance(item, str) else item
            for item in encoders
        ]
        index = cls(Store.create(Path(path)), loaded)
        named = [
            encoder for encoder, item in zip(loaded, encoders, strict=True) if item is not encoder
        ]
        with closed_on_error(index):
            index._take_spaces(loaded, dtype)
            index._check_precision(named, precision)
        return index

    @property
    def path(self) -> Path:
        """Its directory."""
        return self._store.directory

    def __len__(self) -> int:
        with self.read() as connection:
            return connection.scalar(select(func.count()).select_from(documents)) or 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of its files."""
        self._store.close()

    def read(self) -> AbstractContextManager[Connection]:
        """One committed state, for queries of one's own."""
        return self._store.read()

    @contextmanager
    def writer(
        self,
        *,
        on_bad_row: Callable[[BadRowError], None] = refuse,
        on_batch: Callable[[Summary], None] = lambda summary: None,
        wait: bool = False,
    ) -> Iterator[IndexWriter]:
        """The right to write; one process at a time has it.

        Args:
            wait: whether to wait for another process that is writing.
            on_bad_row: told of each document that cannot be used; the default raises.
            on_batch: told after each commit what the run has done so far.

        Raises:
            IndexBusyError: another process is writing, and `wait` is not set.
        """
        from semsearch.index.lock import writer_lock  # searching does without these
        from semsearch.index.writer import IndexWriter

        with writer_lock(self.path, wait=wait), self._store.writing() as connection:
            remove_leftovers(connection, self.path, keep_previous=True)  # of a run that was killed
            yield IndexWriter(
                connection, self.path, self.encoder, on_bad_row=on_bad_row, on_batch=on_batch
            )

    def add(self, corpus: Iterable[Document] | pandas.DataFrame, **columns: Any) -> Summary:
        """Add documents, or the rows of a data frame; those the index has are renewed.

        Args:
            corpus: documents, or a data frame.
            columns: for a data frame: `id_column`, `title_column`, `text_columns`; guessed where
                that is plain.

        Raises:
            BadRowError: a document cannot be used; the batches before it stay.
        """
        with self.writer() as writer:
            return writer.upsert(_documents(corpus, columns))

    def delete(self, ids: Sequence[str] | None = None, where: str | None = None) -> int:
        """Remove documents by id or filter; returns how many. See `IndexWriter.delete`."""
        with self.writer() as writer:
            return writer.delete(ids, where)

    def fields(self) -> list[str]:
        """The names of all metadata fields, sorted."""
        with self.read() as connection:
            return field_names(connection)

    def space(self, name: str | None = None) -> Space:
        """The space of that name; without one, the first.

        Raises:
            SpaceError: there is none of that name.
        """
        with self.read() as connection:
            return find_space(connection, name)

    def complete_space(self, name: str | None = None) -> Space:
        """The space of that name, with a vector for every passage; without one, the first.

        Raises:
            SpaceError: there is none of that name, or it is not complete yet.
        """
        space = self.space(name)
        if not space.complete:
            raise SpaceError(
                f"space '{space.name}' still lacks vectors; finish it with: "
                f"semsearch index --add-space {space.spec} --index {self.path}"
            )
        return space

    def passages(self, space: str | None = None, where: str | None = None) -> Passages:
        """All passages with their vectors; or those whose documents meet a filter.

        Args:
            space: the name of the embedding space; None takes the first.
            where: a filter over metadata.

        Raises:
            SpaceError: there is no such space, or it is not complete yet.
            FilterError: the filter cannot be parsed or names an unknown field.
        """
        found = self.complete_space(space)
        with self.read() as connection:
            return read_passages(connection, found, where)

    def encoder(self, space: Space) -> Encoder:
        """The encoder of a space.

        Raises:
            EncoderError: it cannot be loaded.
            SpaceError: what its spec names has become another model.
        """
        if space.fingerprint not in self._encoders:
            encoder = load_encoder(space.spec, precision=space.precision)
            space.check(encoder)
            self._encoders[space.fingerprint] = encoder
        return self._encoders[space.fingerprint]

    def info(self) -> IndexInfo:
        """What it holds."""
        with self.read() as connection:
            spaces = all_spaces(connection)
            records = {space.name: snapshot_record(connection, space) for space in spaces}
            return IndexInfo(
                path=self.path,
                format=FORMAT_VERSION,
                documents=connection.scalar(select(func.count()).select_from(documents)) or 0,
                chunks=connection.scalar(select(func.count()).select_from(chunks)) or 0,
                fields=field_names(connection),
                spaces=spaces,
                snapshots={name: record for name, record in records.items() if record},
                files={
                    file.name: file.stat().st_size
                    for file in sorted(self.path.iterdir())
                    if file.is_file()
                },
            )

    def _take_spaces(self, encoders: Sequence[Encoder], dtype: str) -> None:
        """Give a new index its spaces; of an old one, check that it has them."""
        with self.read() as connection:
            spaces = all_spaces(connection)
        if not spaces:
            max_tokens = encoders[0].max_document_tokens  # loads the model: before the transaction
            for encoder in encoders[1:]:
                warn_of_cut_passages(encoder, max_tokens)
            with self._store.write() as connection:
                put_setting(connection, "chunk_max_tokens", max_tokens)
                for encoder in encoders:
                    add_space(connection, encoder, dtype, complete=True)
            return
        for encoder in encoders:
            if all(encoder.fingerprint != space.fingerprint for space in spaces):
                for space in spaces:
                    if space.spec == encoder.spec:
                        space.check(encoder)
                names = ", ".join(space.name for space in spaces)
                raise SpaceError(
                    f"{self.path} has no space of encoder '{encoder.spec}' (spaces: {names})"
                )

    def _check_precision(self, encoders: Iterable[Encoder], precision: str | None) -> None:
        """Keep encoders that compute otherwise than their space was made from being used."""
        with self.read() as connection:
            spaces = {space.fingerprint: space for space in all_spaces(connection)}
        for encoder in encoders:
            space = spaces[encoder.fingerprint]
            if precision is None and space.precision is not Precision.AUTO:
                del self._encoders[space.fingerprint]  # `encoder` loads the right one
            elif precision is not None and "precision" in space.description:
                made = space.description["precision"]
                is_int8 = precision == Precision.INT8.value  # to describe that, it is measured
                named = precision if is_int8 else encoder.description().get("precision")
                if made != named:
                    raise SpaceError(
                        f"space '{space.name}' was made in {made}, not {named}; "
                        "the precision is chosen when a space is made"
                    )


def _specs(path: Path) -> list[str]:
    """The specs of the encoders of an index; of one that is not there yet, none."""
    with suppress(IndexNotFoundError), Index.open(path) as index, index.read() as connection:
        return [space.spec for space in all_spaces(connection)]
    return []


def _documents(
    corpus: Iterable[Document] | pandas.DataFrame, columns: dict[str, Any]
) -> Iterable[Document]:
    if type(corpus).__module__.partition(".")[0] == "pandas":
        from semsearch.corpus import frame_documents

        return frame_documents(cast("pandas.DataFrame", corpus), **columns)
    if columns:
        raise ArgumentError("columns are named for a data frame only")
    return cast("Iterable[Document]", corpus)
