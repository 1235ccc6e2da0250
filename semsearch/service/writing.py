"""Adds documents that clients send as JSON: one, a list, or JSON lines; each has its own answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from fastapi import HTTPException
from pydantic import ValidationError
from pydantic_core import from_json

from semsearch.errors import BadRowError
from semsearch.index import Index
from semsearch.indexing.changes import content_id
from semsearch.records import Document
from semsearch.service.problems import reasons
from semsearch.service.requests import NewDocument

JSON = "application/json"
JSON_LINES = ("application/x-ndjson", "application/jsonl")

_ONE = {"$ref": "#/components/schemas/NewDocument"}
_ONE_OR_SEVERAL = {"anyOf": [_ONE, {"type": "array", "items": _ONE}]}
#: The body of a request for OpenAPI; it is parsed item by item, so FastAPI does not derive it.
#: JSON lines are left out, because generators of clients refuse types that they do not know.
BODY = {"requestBody": {"required": True, "content": {JSON: {"schema": _ONE_OR_SEVERAL}}}}


def parse_items(body: bytes, content_type: str) -> list[Document | BadRowError]:
    """The documents of a body, and an error in place of each item that is none.

    Raises:
        HTTPException: the body is no JSON, or of another type (a form, which pages of other sites
            may send).
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind in JSON_LINES:
        lines = [line for line in body.splitlines() if line.strip()]
        return [_parsed(f"item {place}", _value(line)) for place, line in enumerate(lines, 1)]
    if kind != JSON:
        allowed = " or ".join((JSON, *JSON_LINES))
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send Content-Type: {allowed}")
    found = _value(body)
    if isinstance(found, ValueError):
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, f"no JSON: {found}")
    values = found if isinstance(found, list) else [found]
    return [_parsed(f"item {place}", value) for place, value in enumerate(values, 1)]


def _value(text: bytes) -> Any:
    """A JSON value; the error if it is none."""
    try:
        return from_json(text)
    except ValueError as error:
        return error


def _parsed(source: str, value: Any) -> Document | BadRowError:
    if isinstance(value, ValueError):
        return BadRowError(source, f"no JSON: {value}")
    name = value.get("id") if isinstance(value, dict) else None
    try:
        item = NewDocument.model_validate(value)
        document = Document(item.id, item.text, item.title, item.metadata, source)
    except ValidationError as error:
        reason = reasons(error.errors())
    except BadRowError as error:
        reason = error.reason
    else:
        return document if item.id is not None else replace(document, id=content_id(item.text))
    return BadRowError(source, reason, name if isinstance(name, str) else None)


def add_items(index: Index, items: Sequence[Document | BadRowError]) -> dict[str, Any]:
    """Add documents; returns how many are new, and the id or the error of each item, in order."""
    errors = {item.source: item.reason for item in items if isinstance(item, BadRowError)}

    def note(error: BadRowError) -> None:
        errors[error.source] = error.reason

    with index.writer(on_bad_row=note) as writer:
        summary = writer.upsert(item for item in items if isinstance(item, Document))
    answers = []
    for item in items:
        name = item.id if isinstance(item, Document) else item.document_id
        error = errors.get(item.source)
        answers.append({"id": name} if error is None else {"id": name, "error": error})
    return {
        "added": summary.added,
        "changed": summary.changed + summary.metadata_changed,
        "unchanged": summary.unchanged,
        "failed": len(errors),
        "documents": answers,
    }
