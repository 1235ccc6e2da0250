"""Routes matched with encoded paths: ``%2F`` is a slash inside an id, not a separator.

They also answer HEAD where they answer GET, and refuse parameters that would be ignored.
"""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, unquote

from fastapi import HTTPException
from fastapi.routing import APIRoute
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.routing import Match
from starlette.types import Receive, Scope, Send


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
        match, found = super().matches({**scope, "method": _method(scope), "path": "/".join(parts)})
        if "path_params" in found:
            found["path_params"] = {
                name: unquote(value) for name, value in found["path_params"].items()
            }
        return match, found

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; the server leaves out the body for HEAD.

        Raises:
            HTTPException: no route of this path has the method, or a parameter is not UTF-8, is
                given twice, or is given to a route that takes none.
        """
        if self.methods and _method(scope) not in self.methods:
            allowed: set[str] = set()
            for route in scope["app"].routes:
                if isinstance(route, APIRoute) and route.matches(scope)[0] is not Match.NONE:
                    allowed |= route.methods or set()
            if "GET" in allowed:
                allowed.add("HEAD")
            headers = {"Allow": ", ".join(sorted(allowed))}
            raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers=headers)
        if self.path.startswith("/v1/"):  # the page reads its parameters itself
            _check_parameters(scope, takes_some=bool(self.dependant.query_params))
        await super().handle({**scope, "method": _method(scope)}, receive, send)


def _method(scope: Scope) -> str:
    """The method whose route answers a request."""
    method: str = scope["method"]
    return "GET" if method == "HEAD" else method


def _check_parameters(scope: Scope, *, takes_some: bool) -> None:
    """Refuse parameters that would be ignored, or read as others."""
    try:
        text = scope["query_string"].decode("ascii")
        names = Counter(name for name, _ in parse_qsl(text, True, errors="strict"))
    except UnicodeDecodeError:
        detail = "parameters must be percent-encoded UTF-8"
        raise HTTPException(HTTPStatus.BAD_REQUEST, detail) from None
    if names and not takes_some:
        detail = f"{', '.join(names)}: not a parameter of this route"
        if scope["method"] in ("POST", "PUT"):
            detail = f"{scope['method']} takes its parameters in the body, not in the URL"
        raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)
    for name, count in names.items():
        if count > 1 and name not in ("query", "require"):
            detail = f"{name} is given {count} times"
            raise HTTPException(HTTPStatus.UNPROCESSABLE_ENTITY, detail)


def _decoded(part: str) -> str:
    """A part of a path; bytes that are not UTF-8 are refused, or different ids would be equal."""
    try:
        return unquote(part, errors="strict")
    except UnicodeDecodeError:
        detail = "the path must be percent-encoded UTF-8"
        raise HTTPException(HTTPStatus.BAD_REQUEST, detail) from None
