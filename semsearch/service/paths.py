"""Routes matched with encoded paths: ``%2F`` is a slash inside an id, not a separator."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote, unquote

from fastapi import HTTPException
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import Match
from starlette.types import Scope


class DocumentId(PathConvertor):
    """The id of a document, which may contain slashes; ``…/similar`` is another route."""

    regex = "(?!.*/similar$).*"


register_url_convertor("document", DocumentId())


class EncodedPathRoute(APIRoute):
    """A route that is matched with the encoded path; its parameters are decoded."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the route matches, and its parameters.

        Raises:
            HTTPException: the path is not UTF-8.
        """
        path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        # Normalised, since clients may encode more than necessary.
        parts = [quote(_decoded(part), safe="") for part in path.decode("latin-1").split("/")]
        match, found = super().matches({**scope, "path": "/".join(parts)})
        if "path_params" in found:
            found["path_params"] = {
                name: unquote(value) for name, value in found["path_params"].items()
            }
        return match, found


def _decoded(part: str) -> str:
    """A part of a path; bytes that are not UTF-8 are refused, or different ids would be equal."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        detail = "the path must be percent-encoded UTF-8"
        raise HTTPException(HTTPStatus.BAD_REQUEST, detail) from None
