"""Converts documents in a child process, whose memory and time are limited.

Libraries that read PDF or DOCX can be brought to take any amount of both by a small file. The child
converts one document after another; one that has died is replaced when the next document comes.
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

#: How long a child may wait for its next document: it is used again for half of that, and ends
#: by itself after all of it.
IDLE_SECONDS = 60

_PROGRAM = (
    "import sys; sys.path[:] = {path!r}; "
    "from semsearch.corpus.conversion_child import main; main({bytes})"
)

_idle: list[_Child] = []


def converted(source: Source, kind: CorpusFormat, encoding: str | None) -> Parts:
    """A document as the child converts it.

    Args:
        source: the document.
        kind: its format.
        encoding: of HTML, as declared by the user.

    Raises:
        CorpusError: it cannot be converted, or not within the limits; or later, while its sections
            are read.
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
    goes_on = False
    fault = None
    try:
        for answer in child.answers(request):
            if "goes_on" in answer:  # the last one
                goes_on = answer["goes_on"]
                break
            fault = answer.get("fault")
            if fault is None:
                yield answer
    finally:
        if goes_on and not _idle:
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
        self._is_late = False
        program = _PROGRAM.format(path=sys.path, bytes=MAX_CONVERSION_BYTES)
        self._process = subprocess.Popen(  # noqa: S603 - ourselves
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def is_usable(self) -> bool:
        """Whether it lives, and goes on living long enough to be asked."""
        is_fresh = time.monotonic() - self.idle_since < IDLE_SECONDS / 2
        return is_fresh and self._owner == os.getpid() and self._process.poll() is None

    def answers(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What it makes of a document, until its caller stops asking.

        Raises:
            CorpusError: it died, or has made its caller wait for too long.
        """
        questions, answers = self._pipes()
        left = MAX_CONVERSION_SECONDS
        with suppress(BrokenPipeError):  # then it does not answer
            questions.write(json.dumps(request).encode() + b"\n")
            questions.flush()
        while True:
            begun = time.monotonic()
            watchdog = threading.Timer(left, self._stop)
            watchdog.start()
            try:
                line = answers.readline()
            finally:
                watchdog.cancel()
                watchdog.join()
            left = max(left - (time.monotonic() - begun), 0.0)
            if not line.endswith(b"\n"):
                raise CorpusError(self._why())
            yield json.loads(line)

    def close(self) -> None:
        """End it, unless it is another process's."""
        if self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        for pipe in self._pipes():
            with suppress(OSError):  # what was not sent
                pipe.close()

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        """Into it, and out of it."""
        into, out = self._process.stdin, self._process.stdout
        if into is None or out is None:
            raise ValueError("it was started without pipes")
        return into, out

    def _stop(self) -> None:
        self._is_late = True
        self._process.kill()

    def _why(self) -> str:
        if self._is_late:
            return f"takes longer than {MAX_CONVERSION_SECONDS:.0f} s to convert"
        memory = size_shown(MAX_CONVERSION_BYTES)
        return f"needs more than {memory} of memory to be converted, or crashes the converter"


@atexit.register
def _close_idle() -> None:
    while _idle:
        _idle.pop().close()
