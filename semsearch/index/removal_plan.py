"""What a sync or a deletion is about to remove, and whether that has been allowed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from semsearch.corpus.documents import SkippedRows
from semsearch.errors import CombinationError, DocumentNotFoundError, RemovalError
from semsearch.index.files import ids_of_file
from semsearch.stores.filtering import no_match, read_filter
from semsearch.stores.protocol import Seen, Selection, StoreState
from semsearch.texts import quantity

logger = logging.getLogger(__name__)

#: A removal that exceeds both this share of the index and this number of documents is a large one.
LARGE_SHARE, LARGE_COUNT = 0.1, 10
EXAMPLES_SHOWN = 5


class Removal(NamedTuple):
    """Documents that are to be removed from an index.

    Args:
        documents: how many.
        total: how many documents the index held before.
        examples: the ids of the first of them.
        kept: documents that the corpus lacks and that stay nonetheless, because as many skipped
            rows as `unidentified` says may be theirs.
        unidentified: skipped rows whose documents are not known.
    """

    documents: int
    total: int
    examples: tuple[str, ...] = ()
    kept: int = 0
    unidentified: int = 0

    def needs_allowance(self, *, corpus_is_empty: bool = False) -> bool:
        """Whether these are more than ten documents and a tenth of the index.

        Args:
            corpus_is_empty: whether they go because there is no other; then any are too many.
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
        """One line about the documents that stay."""
        rows = quantity(self.unidentified, "skipped row")
        return (
            f"nothing is removed: the corpus lacks {quantity(self.kept, 'document')} of the "
            f"index, which may be those of {rows} whose ids are unknown; correct what was "
            f"skipped, or remove documents with: semsearch delete"
        )


#: Whether a large removal may happen, or who is asked before it does.
Allowance = bool | Callable[[Removal], bool]


def check_removal(removal: Removal, allowed: Allowance, *, corpus_is_empty: bool = False) -> None:
    """Let a small removal pass, and a large one that is allowed.

    Args:
        removal: what is to be removed.
        allowed: whether a large one may happen; a function is asked.
        corpus_is_empty: whether the documents go for want of any, which is taken for large.

    Raises:
        RemovalError: it is large and not allowed.
    """
    needed = removal.needs_allowance(corpus_is_empty=corpus_is_empty)
    if needed and not (allowed(removal) if callable(allowed) else allowed):
        why = "the corpus has no documents; " if corpus_is_empty else ""
        raise RemovalError(
            f"{why}this would remove {removal}; nothing was removed; "
            "if that is meant, add --allow-removals (in Python: allow_removals=True)"
        )


def planned_removal(state: StoreState, selection: Selection, added: int = 0) -> Removal:
    """What removing a selection of documents would remove.

    Args:
        state: of the store.
        selection: which documents.
        added: how many documents of the index do not count, being new.
    """
    return Removal(
        state.count(selection),
        state.count() - added,
        tuple(state.ids(selection, EXAMPLES_SHOWN)),
    )


def named_documents(state: StoreState, ids: Sequence[str] | None, where: str | None) -> Selection:
    """The documents of these ids, those that meet a filter, or those that both name.

    Raises:
        ArgumentError: neither is given, or the index has no document of such an id.
        FilterError: the filter cannot be used.
    """
    if ids is None and where is None:
        raise CombinationError("say what to delete: ids or a filter")
    if ids is not None:
        _check_present(state, ids)
    condition = None
    if where is not None:
        condition, notes = read_filter(state, where)
        for message in (*notes, no_match(state, condition)):
            if message:
                logger.warning("%s", message)
    return Selection(ids, condition)


def unseen_documents(state: StoreState, skipped: SkippedRows, added: int = 0) -> Removal:
    """The removal of the documents that the corpus lacks.

    A document whose row was skipped is not lacking. Where it is not known which documents the
    skipped rows hold, any may be among them, and none is removed.
    """
    listed = [*skipped.ids, *(one for name in skipped.files for one in ids_of_file(state, name))]
    state.mark_seen({name: Seen("", 0) for name in listed} | state.seen(listed))
    removal = planned_removal(state, Selection(unseen=True), added)
    if skipped.unidentified:
        return Removal(0, removal.total, kept=removal.documents, unidentified=skipped.unidentified)
    return removal


def _check_present(state: StoreState, ids: Sequence[str]) -> None:
    missing = sorted(set(ids).difference(state.known(ids)))
    if missing:
        shown = ", ".join(f"'{name}'" for name in missing[:5])
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise DocumentNotFoundError(f"no document {shown}{more} in this index; nothing was deleted")
