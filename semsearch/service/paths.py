"""Paths as they were sent: ``%2F``, a slash within an id, is told from one between two names."""

from __future__ import annotations

from urllib.parse import quote, unquote

from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import Match
from starlette.types import Scope


class DocumentId(PathConvertor):
    """The id of a document, with slashes; ``…/similar`` is the path of what resembles one."""

    regex = "(?!.*/similar$).*"


register_url_convertor("document", DocumentId())


class EncodedPathRoute(APIRoute):
    """Is matched with the encoded path; its parameters are decoded."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether the route is meant, and with which parameters."""
        sent: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
        # As any client may encode more than it has to.
        parts = [quote(unquote(part), safe="") for part in sent.decode("latin-1").split("/")]
        match, found = super().matches({**scope, "path": "/".join(parts)})
        if "path_params" in found:
            found["path_params"] = {
                name: unquote(value) for name, value in found["path_params"].items()
            }
        return match, found
