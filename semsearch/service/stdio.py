"""Serves an agent over standard input and output."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Condition, Lock
from typing import Any, BinaryIO

from mcp.server.mcpserver import MCPServer

from semsearch.service.worker import Worker


class LazyWorkers(Mapping[str, Worker]):
    """The workers of indexes, which are opened on first use, so that tools are listed at once.

    Args:
        directories: the indexes by name.
    """

    def __init__(self, directories: Mapping[str, Path]) -> None:
        self._directories = directories
        self._opened: dict[str, Worker] = {}
        self._opening = Lock()

    def __getitem__(self, name: str) -> Worker:
        with self._opening:
            if name not in self._opened:
                self._opened[name] = Worker(self._directories[name])
            return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._directories)

    def __len__(self) -> int:
        return len(self._directories)

    def close(self) -> None:
        """Close the indexes."""
        for worker in self._opened.values():
            worker.close()


def serve_agent(server: MCPServer[Any]) -> None:
    """Serve an agent until its input ends and each of its requests is answered.

    The SDK (2.3) closes the connection when the input ends, without the answers that it owes, so
    the end of the input reaches it after them.
    """
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer
    questions = Questions(sys.stdin.buffer)
    sys.stdin = io.TextIOWrapper(questions)
    sys.stdout = io.TextIOWrapper(Answers(answers, questions.note))
    server.run()


class Questions(io.BufferedIOBase):
    """Lines of input; its end comes when all requests are answered."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._open: set[Any] = set()  # the ids of requests that are not answered yet
        self._changed = Condition()

    def readable(self) -> bool:
        """It is."""
        return True

    def read1(self, size: int = -1) -> bytes:
        """The next line, of whatever size."""
        if line := self._stream.readline():
            self.note(line)
        else:
            with self._changed:
                self._changed.wait_for(lambda: not self._open)
        return line

    def note(self, line: bytes) -> None:
        """Note a message in either direction."""
        with suppress(ValueError, TypeError, AttributeError):  # the SDK answers what is no message
            message = json.loads(line)
            cancelled = message.get("params", {}).get("requestId")
            with self._changed:
                if "method" not in message:
                    self._open.discard(message["id"])
                elif "id" in message:
                    self._open.add(message["id"])
                elif message["method"] == "notifications/cancelled":  # they have no answer
                    self._open.discard(cancelled)
                self._changed.notify_all()


class Answers(io.BufferedIOBase):
    """Lines of output, each passed to `note`, too."""

    def __init__(self, stream: BinaryIO, note: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._note = note

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Write a line."""
        line = bytes(data)
        self._stream.write(line)
        self._stream.flush()
        self._note(line)
        return len(line)
