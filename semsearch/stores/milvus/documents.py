"""The rows of documents and of their passages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from semsearch.stores.milvus.conditions import filter_json
from semsearch.stores.milvus.connection import Row
from semsearch.stores.milvus.schema import MAX_BYTES, NO_VECTOR
from semsearch.stores.protocol import NewDocument


def document_row(document: NewDocument, number: int, first: int, stored: Row | None) -> Row:
    """The row of a document.

    Args:
        document: the document.
        number: its number.
        first: the id of its first passage, if it has new ones.
        stored: its present row, which names the passages that it keeps.
    """
    row: Row = {
        "id": document.id,
        "document": number,
        "title": json.dumps(document.title, ensure_ascii=False),
        "metadata": document.metadata,
        "text_hash": document.text_hash,
        "fields": filter_json(document.id, document.title, document.metadata),
        "vector": NO_VECTOR,
    }
    if document.passages is None and stored is not None:
        return row | {name: stored[name] for name in ("first", "passages", "ending")}
    passages = document.passages or ()
    ending = document.text[passages[-1].end :] if passages else document.text
    return row | {"first": first, "passages": len(passages), "ending": ending}


def passage_rows(document: NewDocument, row: Row) -> list[Row]:
    """The rows of the new passages of a document, whose row is given."""
    passages = document.passages or ()
    return [
        {
            "passage": row["first"] + place,
            "document": row["document"],
            **passage._asdict(),
            "before": before,
            "fields": row["fields"],
        }
        for place, (passage, before) in enumerate(zip(passages, _gaps(document), strict=True))
    ]


def misfits(documents: Sequence[NewDocument]) -> dict[str, str]:
    """Why Milvus cannot hold documents, by the ids of those that are too large."""
    found: dict[str, str] = {}
    for document in documents:
        row = document_row(document, 0, 0, {"first": 0, "passages": 0, "ending": ""})
        for each in (row, *passage_rows(document, row)):
            for name, value in each.items():
                text = json.dumps(value, ensure_ascii=False) if name == "fields" else value
                if isinstance(text, str) and (size := len(text.encode())) > MAX_BYTES:
                    found[document.id] = (
                        f"its '{name}' has {size:,} bytes; Milvus takes up to {MAX_BYTES:,}"
                    )
    return found


def _gaps(document: NewDocument) -> list[str]:
    """The text between each passage and the one before it."""
    passages = document.passages or ()
    places = [0, *(place for passage in passages for place in (passage.start, passage.end))]
    return [document.text[end:start] for end, start in list(pairwise(places))[::2]]
