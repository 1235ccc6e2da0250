"""Dry runs: the changes that indexing a corpus or deleting documents would make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from semsearch.corpus.documents import DocumentReader
from semsearch.errors import BadRowError, IndexNotFoundError
from semsearch.indexing.changes import Change, SeenDocuments, compare, next_documents
from semsearch.indexing.removal import Removal, named_documents, planned_removal, unseen_documents
from semsearch.storage import create_store, open_store
from semsearch.storage.interface import Reader


class Preview(NamedTuple):
    """The changes that indexing a corpus would make."""

    changes: Counter[Change]  #: the number of documents by kind of change
    removal: Removal | None  #: the documents that would be removed; None unless for a sync


def preview_index(
    directory: Path,
    corpus: DocumentReader,
    *,
    sync: bool = False,
    on_bad_row: Callable[[BadRowError], None],
) -> Preview:
    """Compare a corpus with an index without changing it; no encoder is loaded.

    Without an index, all documents are new.

    Raises:
        IndexFormatError: the directory holds other files, or an index of another format.
        CorpusError: the corpus cannot be read.
    """
    changes: Counter[Change] = Counter()
    with _state(directory) as state, closing(SeenDocuments()) as seen:
        corpus.readings.earlier = state.settings().corpora
        while batch := next_documents(corpus):
            changes.update(it.change for it in compare(state, seen, batch, on_bad_row))
        total = state.count()
        removal = unseen_documents(state, seen, corpus.skipped, total)[0] if sync else None
    return Preview(changes, removal)


def preview_delete(directory: Path, ids: Sequence[str] | None, where: str | None) -> Removal:
    """The documents that `IndexWriter.delete` would remove; raises the same errors."""
    with closing(open_store(directory)) as store, store.read() as state:
        return planned_removal(state, named_documents(state, ids, where))


@contextmanager
def _state(directory: Path) -> Iterator[Reader]:
    """A state of the index, or of a temporary empty one if there is none."""
    with ExitStack() as stack:
        try:
            store = open_store(directory)
        except IndexNotFoundError:
            folder = stack.enter_context(TemporaryDirectory(prefix="semsearch-"))
            store = create_store(Path(folder), max_tokens=1, encoders=[])
        stack.enter_context(closing(store))
        yield stack.enter_context(store.read())
