"""The documents that a sync or a deletion will remove, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from semsearch.corpus.documents import SkippedRows
from semsearch.errors import ArgumentError, DocumentNotFoundError, RemovalError, quantity
from semsearch.indexing.changes import SeenDocuments
from semsearch.indexing.files import ids_of_file
from semsearch.records import Where
from semsearch.storage.interface import Reader, Selection, parse_filter, warn_if_none_match

#: A removal that exceeds both this share of the index and this number of documents is a large one.
LARGE_SHARE, LARGE_COUNT = 0.1, 10
EXAMPLES_SHOWN = 5


class Removal(NamedTuple):
    """Documents to be removed from an index.

    Args:
        documents: their number.
        total: the number of documents of the index, without those that this sync has added.
        examples: the ids of the first ones.
        kept: the number of documents that are missing from the corpus but stay, because skipped
            rows with unknown ids may be theirs.
        unidentified: the number of these skipped rows.
    """

    documents: int
    total: int
    examples: tuple[str, ...] = ()
    kept: int = 0
    unidentified: int = 0

    def needs_allowance(self, *, corpus_is_empty: bool = False) -> bool:
        """Whether these are more than ten documents and a tenth of the index.

        Args:
            corpus_is_empty: the corpus has no documents; then any removal needs allowance.
        """
        limit = 0 if corpus_is_empty else max(LARGE_COUNT, LARGE_SHARE * self.total)
        return self.documents > limit

    def __str__(self) -> str:
        """``90 of 100 documents ('a', 'b' and 88 more)``."""
        ids = ", ".join(f"'{name}'" for name in self.examples)
        more = self.documents - len(self.examples)
        shown = f" ({ids}{f' and {more:,} more' if more else ''})" if ids else ""
        return f"{self.documents:,} of {quantity(self.total, 'document')}{shown}"

    def why_kept(self) -> str:
        """A message about the documents that stay."""
        rows = quantity(self.unidentified, "skipped row")
        return (
            f"nothing is removed: the corpus lacks {quantity(self.kept, 'document')} of the index, "
            f"but {rows} with unknown ids may be theirs; correct the skipped rows"
        )


#: Whether a large removal is allowed, or a function that decides it.
Allowance = bool | Callable[[Removal], bool]


def check_removal(removal: Removal, allowed: Allowance, *, corpus_is_empty: bool = False) -> None:
    """Raise a `RemovalError` for a large removal that is not allowed; see `needs_allowance`."""
    if not removal.needs_allowance(corpus_is_empty=corpus_is_empty):
        return
    answer = allowed(removal) if callable(allowed) else allowed
    if answer is not True:  # a coroutine and "no" are true
        why = "the corpus has no documents; " if corpus_is_empty else ""
        raise RemovalError(
            f"{why}this would remove {removal}; nothing was removed; "
            "if this is intended, add --allow-removals (in Python: allow_removals=True)"
        )


def planned_removal(reader: Reader, selection: Selection) -> Removal:
    """The removal of a selection of documents."""
    examples = tuple(reader.ids(selection, EXAMPLES_SHOWN))
    return Removal(reader.count(selection), reader.count(), examples)


def named_documents(state: Reader, ids: Sequence[str] | None, where: Where | None) -> Selection:
    """The documents with these ids, those that match a filter, or those that do both.

    Raises:
        ArgumentError: neither is given, or the index has no document with such an id.
        FilterError: the filter is invalid.
    """
    if ids is None and where is None:
        raise ArgumentError("nothing to delete: give ids, a filter (where), or both")
    missing = sorted(set(ids or ()).difference(state.stored_documents(ids or ())))
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise DocumentNotFoundError(
            f"no document '{missing[0]}'{more} in this index; nothing was deleted"
        )
    if where is None:
        return Selection(ids)
    condition = parse_filter(state, where)
    warn_if_none_match(state, condition)
    return Selection(ids, condition)


def unseen_documents(
    reader: Reader, seen: SeenDocuments, skipped: SkippedRows, total: int
) -> tuple[Removal, list[str]]:
    """The removal of the documents that are missing from the corpus, and their ids.

    Documents whose row was skipped do not count as missing. If the ids of some skipped rows are
    unknown, any document may be theirs, and none is removed.

    Args:
        reader: a state of the index.
        seen: the documents of the corpus.
        skipped: the rows that were not read.
        total: see `Removal`.
    """
    seen.add_ids(skipped.ids)
    for name in skipped.files:
        seen.add_ids(ids_of_file(reader, name))
    ids = seen.missing_from(reader.ids())
    if skipped.unidentified:
        return Removal(0, total, kept=len(ids), unidentified=skipped.unidentified), []
    return Removal(len(ids), total, tuple(ids[:EXAMPLES_SHOWN])), ids
