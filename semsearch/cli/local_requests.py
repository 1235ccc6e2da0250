"""Answers requests that other processes of the same user send through a service's socket."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any

import click
import rich.table  # noqa: F401 - the first query need not wait for it
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from semsearch.addresses import place, resolved
from semsearch.cli.options import existing_index, is_given
from semsearch.cli.query_command import QueryArguments, command
from semsearch.cli.render import Screen, visible
from semsearch.cli.service_client import index_now
from semsearch.encoders import current_fingerprint
from semsearch.errors import ArgumentError, SemsearchError
from semsearch.index import Index
from semsearch.service.problems import problem
from semsearch.service.worker import Worker, warnings_of


class LocalRequests:
    """Answers `semsearch query` with what the command would print, and `semsearch serve --stop`.

    Args:
        program: the program at the start of this process; see
            `semsearch.cli.service_client.program`.
        address: the address of the service.
        workers: the workers of the indexes by name; may be filled after this call.
    """

    def __init__(self, program: str, address: str, workers: Mapping[str, Worker]) -> None:
        self._program = program
        self._address = address
        self._workers = workers

    def routes(self) -> Sequence[Route]:
        """The routes under /local/."""
        return [
            Route("/local/query", self.query, methods=["POST"]),
            Route("/local/stop", self.stop, methods=["POST"]),
        ]

    async def query(self, request: Request) -> Response:
        """The output of the command, if this process would print the same."""
        asked = await request.json()
        try:
            return JSONResponse(await self._answer(asked))
        except (SemsearchError, click.ClickException, KeyError, OSError, ValueError) as error:
            return problem(HTTPStatus.CONFLICT, f"the command has to do this itself: {error}")

    async def stop(self, request: Request) -> Response:
        """Stop the service, if it serves one of the indexes, or none is named."""
        asked = await request.json()
        served = {str(resolved(worker.path)) for worker in self._workers.values()}
        if asked and not served & set(asked):
            return problem(HTTPStatus.CONFLICT, "none of these indexes is served here")
        os.kill(os.getpid(), signal.SIGTERM)
        return JSONResponse(f"{', '.join(self._workers)} at {self._address}")

    async def _answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request["program"] != self._program:
            raise ArgumentError("the program or its environment differs")
        environment, here = request["environment"], Path(request["directory"])
        context = command.make_context("query", request["arguments"], help_option_names=[])
        with context.scope():
            arguments = QueryArguments.of(context.params)
            is_named = is_given("directory")
        budget = arguments.options["rerank_budget"]
        if not arguments.is_single or arguments.reranker or budget is not None:
            raise ArgumentError("it needs files, a reranker or a terminal")
        if arguments.format_name == "parquet":
            raise ArgumentError("its output is not text")
        named = arguments.directory if is_named else environment.get("SEMSEARCH_INDEX")
        directory = resolved(existing_index(place(str(named)) if named else None, here), here)
        for worker in self._workers.values():
            if resolved(worker.path) == directory:
                return await worker.call(partial(_printed, arguments, request))
        raise ArgumentError(f"{directory} is not served here")


class _ClientFile(io.StringIO):
    """Collects the text that another process will write to its standard output."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether that output is a terminal."""
        return self._is_terminal


def _printed(arguments: QueryArguments, request: Mapping[str, Any], index: Index) -> dict[str, Any]:
    """The output of the command, its messages, and the identity of the index."""
    path = str(resolved(index.path))
    # Before the search, so that a later replacement is noticed.
    identity = index_now(path) or {"address": path}
    file = _ClientFile(is_terminal=request["is_terminal"])
    screen = Screen(file, request["environment"], request["columns"])
    with warnings_of(index) as messages:
        space = index.space(arguments.space, complete=True)
        if arguments.needs_encoder and current_fingerprint(space.spec) != space.fingerprint:
            raise ArgumentError(f"'{space.spec}' is a different model now")
        output = arguments.output(index, screen)
        text = arguments.query(arguments.text)
        hits = index.search(text, space=space.name, **arguments.options)
        output.add(hits, heading=False)
    return {
        "output": file.getvalue(),
        "messages": "".join(f"{visible(message)}\n" for message in messages),
        "index": identity,
    }
