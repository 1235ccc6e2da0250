"""Comparison of a batch of documents with an index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, TypeVar

from semsearch.errors import BadRowError, DuplicateIdError
from semsearch.records import Document
from semsearch.stores.protocol import Seen, StoreState, text_hash

#: The maximum size of a batch.
BATCH_DOCUMENTS, BATCH_CHARACTERS = 4096, 1_000_000

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


class Change(Enum):
    """How a document differs from the index."""

    ADDED = "added"
    CHANGED = "changed"
    METADATA_CHANGED = "metadata changed"
    UNCHANGED = "unchanged"


class Prepared(NamedTuple):
    """A document of the corpus as it is compared with the index."""

    id: str | None
    text: str
    title: str | None
    metadata: str  #: JSON
    text_hash: str
    source: str

    @classmethod
    def of(cls, document: Document) -> Prepared:
        """A document, prepared.

        Raises:
            BadRowError: its metadata are no longer JSON.
        """
        try:
            metadata = _metadata_json(document)
        except (TypeError, ValueError) as error:
            name = document.id or _content_id(document)
            reason = f"the metadata of '{name}' is no longer JSON: {error}"
            raise BadRowError(document.source, reason, name) from error
        digest = text_hash(document.text)
        return cls(document.id, document.text, document.title, metadata, digest, document.source)


class Planned(NamedTuple):
    """A document of the corpus and how it differs from the index."""

    change: Change
    external_id: str
    document: Prepared


_Read = TypeVar("_Read", Document, Prepared, Document | Prepared)


def next_documents(
    corpus: Iterator[_Read],
    count: int = BATCH_DOCUMENTS,
    characters: int = BATCH_CHARACTERS,
) -> list[_Read]:
    """The next documents: at most `count`, with about `characters` in all; none at the end."""
    documents: list[_Read] = []
    for document in corpus:
        documents.append(document)
        characters -= len(document.text)
        if len(documents) == count or characters <= 0:
            break
    return documents


def plan_batch(
    state: StoreState,
    batch: Sequence[Document | Prepared],
    on_bad_row: Callable[[BadRowError], None],
) -> list[Planned]:
    """Compare a batch with the index, by id and content.

    Documents whose id this run has already read are passed to `on_bad_row`. A document without an
    id gets the hash of its text as id, with a number appended for further documents of that text.
    """
    named = _named(state, batch, on_bad_row)
    known = state.known([external_id for external_id, _ in named])
    plans = []
    for external_id, document in named:
        try:
            found = document if isinstance(document, Prepared) else Prepared.of(document)
        except BadRowError as error:
            on_bad_row(error)
            continue
        stored = known.get(external_id)
        if stored is None:
            change = Change.ADDED
        elif stored.text_hash != found.text_hash:
            change = Change.CHANGED
        elif stored.title != found.title or not _is_same_json(stored.metadata, found.metadata):
            change = Change.METADATA_CHANGED
        else:
            change = Change.UNCHANGED
        plans.append(Planned(change, external_id, found))
    return plans


def _metadata_json(document: Document) -> str:
    """Metadata as JSON; it was validated, but the mapping may have been changed since."""
    written = _JSON.encode(document.metadata)
    written.encode()  # raises for unpaired surrogates, which a database cannot store
    return written


def _is_same_json(one: str, other: str) -> bool:
    """Whether two objects have the same fields, in any order; damaged JSON equals nothing."""
    if one == other or len(one) != len(other):
        return one == other
    try:
        return json.dumps(json.loads(one), sort_keys=True) == json.dumps(
            json.loads(other), sort_keys=True
        )
    except (ValueError, RecursionError):
        return False


def _named(
    state: StoreState,
    batch: Sequence[Document | Prepared],
    on_bad_row: Callable[[BadRowError], None],
) -> list[tuple[str, Document | Prepared]]:
    """The documents with their ids, marked as seen, without duplicates."""
    wanted = [document.id or _content_id(document) for document in batch]
    seen = state.seen(wanted)
    named = []
    for external_id, document in zip(wanted, batch, strict=True):
        before = seen.get(external_id)
        if before and document.id is not None:
            first = f" (first in {before.source})" if before.source else ""
            on_bad_row(DuplicateIdError(document.source, f"duplicate id '{external_id}'{first}"))
            continue
        if before:
            seen[external_id] = before._replace(repeats=before.repeats + 1)
            external_id = f"{external_id}-{before.repeats + 2}"
        seen[external_id] = Seen(document.source, 0)
        named.append((external_id, document))
    state.mark_seen(seen)
    return named


def _content_id(document: Document | Prepared) -> str:
    return hashlib.sha256(document.text.encode()).hexdigest()[:16]
