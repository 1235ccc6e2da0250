"""The process that converts documents for `semsearch.corpus.conversion`.

It receives a line of JSON for each document and answers with lines of JSON: the title and remark,
batches of sections, the fault if there is one, and whether it can convert another document.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.corpus.conversion import IDLE_SECONDS
from semsearch.corpus.converters import convert
from semsearch.corpus.formats import CorpusFormat
from semsearch.corpus.sources import Progress, open_source
from semsearch.errors import BadRowError, CorpusError, first_line
from semsearch.limits import MAX_CONVERSION_SECONDS

if TYPE_CHECKING:
    from semsearch.corpus.sections import Section

#: The size of a batch: sections or characters, whichever is reached first.
_SECTIONS, _CHARACTERS = 100, 1 << 20

_Answer = dict[str, Any]


def main(max_bytes: int) -> None:
    """Convert documents until standard input ends.

    Args:
        max_bytes: the memory limit of this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    _limit_memory(max_bytes)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # libraries may print
    _limit_seconds(IDLE_SECONDS)
    for line in sys.stdin:
        _limit_seconds(0, processing=2 * MAX_CONVERSION_SECONDS)
        try:
            for answer in _answers(json.loads(line)):
                print(json.dumps(answer), file=output, flush=True)
        except MemoryError:
            return  # as if a library had crashed; the parent reports it
        reusable = _memory_used() < max_bytes / 4  # memory may not be returned
        print(json.dumps({"reusable": reusable}), file=output, flush=True)
        if not reusable:
            return
        _limit_seconds(IDLE_SECONDS)


def _memory_used() -> int:
    """The memory that counts towards the limit, in bytes; 0 if unknown."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()
    except OSError:  # not Linux
        return 0
    return int(pages[5]) * os.sysconf("SC_PAGE_SIZE")


def _limit_memory(max_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or hard > max_bytes:
        resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))


def _limit_seconds(waiting: int, processing: float = 0) -> None:
    """Exit after these times, in case the parent is gone; 0 means no limit."""
    if sys.platform != "win32":
        signal.alarm(waiting)
        signal.setitimer(signal.ITIMER_PROF, processing)


def _answers(request: _Answer) -> Iterator[_Answer]:
    kind = CorpusFormat(request["format"])
    try:
        with open_source(Path(request["path"]), Progress(None)) as source:
            parts = convert(replace(source, name=request["name"]), kind, request["encoding"])
            yield {"title": parts.title, "remark": parts.remark, "if_blank": parts.if_blank}
            yield from _batches(parts.sections)
    except MemoryError:
        raise
    except BadRowError as error:  # bytes that cannot be decoded
        yield {"fault": error.reason}
    except CorpusError as error:
        yield {"fault": str(error)}
    except Exception as error:  # damaged files make libraries raise anything
        yield {"fault": f"cannot be read as {kind.value.upper()}: {first_line(error)}"}


def _batches(sections: Iterator[Section]) -> Iterator[_Answer]:
    batch: list[Section] = []
    characters = 0
    try:
        for section in sections:
            batch.append(section)
            characters += len(section.text)
            if len(batch) >= _SECTIONS or characters >= _CHARACTERS:
                yield {"sections": batch}
                batch, characters = [], 0
    except Exception:
        yield {"sections": batch}  # the sections read before it are kept
        raise
    yield {"sections": batch}
