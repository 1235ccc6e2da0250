"""Converts documents in a child process with limited memory and time.

A small file can make libraries for PDF or DOCX use arbitrary amounts of both. The child converts
one document after another; if it dies, the next document starts a new one.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

from semsearch.corpus.sections import Parts, Section
from semsearch.errors import CorpusError
from semsearch.limits import MAX_CONVERSION_BYTES, MAX_CONVERSION_SECONDS, size_shown

if TYPE_CHECKING:
    from semsearch.corpus.formats import CorpusFormat
    from semsearch.corpus.sources import Source

#: A child exits after waiting this long for a document; it is reused only within half that time.
IDLE_SECONDS = 60

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; "
    "from semsearch.corpus.conversion_child import main; main({bytes})"
)

_idle: list[_Child] = []


def converted(source: Source, kind: CorpusFormat, encoding: str | None) -> Parts:
    """The parts of a document, converted by the child process.

    Args:
        source: the document.
        kind: its format.
        encoding: the encoding of HTML, if named by the user.

    Raises:
        CorpusError: it cannot be converted within the limits; raised now or later, while its
            sections are read.
    """
    request = {
        "path": str(source.on_disk().absolute()),
        "name": source.name,
        "format": kind.value,
        "encoding": encoding,
    }
    answers = _answers(request)
    head = next(answers)
    return Parts(head["title"], _sections(answers), head["remark"], head["if_blank"])


def _sections(answers: Iterator[dict[str, Any]]) -> Iterator[Section]:
    for answer in answers:
        for section in answer["sections"]:
            yield Section(*section)


def _answers(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    child = _available()
    reusable = False
    fault = None
    try:
        for answer in child.answers(request):
            if "reusable" in answer:  # the last one
                reusable = answer["reusable"]
                break
            fault = answer.get("fault")
            if fault is None:
                yield answer
    finally:
        if reusable and not _idle:
            child.idle_since = time.monotonic()
            _idle.append(child)
        else:
            child.close()
    if fault is not None:
        raise CorpusError(fault)


def _available() -> _Child:
    while _idle:
        child = _idle.pop()
        if child.is_usable():
            return child
        child.close()
    return _Child()


class _Child:
    """A process that runs `semsearch.corpus.conversion_child`."""

    def __init__(self) -> None:
        self.idle_since = time.monotonic()
        self._owner = os.getpid()
        self._timed_out = False
        program = _PROGRAM.format(path=sys.path, bytes=MAX_CONVERSION_BYTES)
        self._process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def is_usable(self) -> bool:
        """Whether it is alive and will not exit before it gets a document."""
        is_fresh = time.monotonic() - self.idle_since < IDLE_SECONDS / 2
        return is_fresh and self._owner == os.getpid() and self._process.poll() is None

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Its answers to one request.

        Raises:
            CorpusError: the child died, or took too long.
        """
        requests, answers = self._pipes()
        left = MAX_CONVERSION_SECONDS
        with suppress(BrokenPipeError):  # detected below: no answer
            requests.write(json.dumps(request).encode() + b"\n")
            requests.flush()
        while True:
            started = time.monotonic()
            watchdog = threading.Timer(left, self._stop)
            watchdog.start()
            try:
                line = answers.readline()
            finally:
                watchdog.cancel()
                watchdog.join()
            left = max(left - (time.monotonic() - started), 0.0)
            if not line.endswith(b"\n"):
                raise CorpusError(self._failure())
            yield json.loads(line)

    def close(self) -> None:
        """Kill it, if this process started it."""
        if self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        for pipe in self._pipes():
            with suppress(OSError):  # unsent data
                pipe.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Its standard input and output."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ValueError("the child was started without pipes")
        return stdin, stdout

    def _stop(self) -> None:
        self._timed_out = True
        self._process.kill()

    def _failure(self) -> str:
        if self._timed_out:
            return f"takes longer than {MAX_CONVERSION_SECONDS:.0f} s to convert"
        memory = size_shown(MAX_CONVERSION_BYTES)
        return f"needs more than {memory} of memory to be converted, or crashes the converter"


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()
