"""Converts documents (PDF, DOCX …) in a process of its own, with limited memory and time.

A small file can make libraries for PDF or DOCX use arbitrary amounts of both. One process converts
one document after another; when it fails, the next document starts another one.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.util import find_spec
from multiprocessing import get_context, parent_process
from pathlib import Path, PurePath
from threading import Thread
from types import ModuleType
from typing import Any

from semsearch.corpus.formats import CorpusFormat, foreign, without_gz
from semsearch.corpus.html import read_html
from semsearch.corpus.office import read_docx, read_pdf, read_pptx
from semsearch.corpus.sources import Source
from semsearch.corpus.table import COLUMNS, Contents, LeftOut, Row, Section, Table
from semsearch.corpus.texts import one_line
from semsearch.errors import BadFileError, BadRowError, CorpusError, first_line

#: Limits of the process: its memory, and the time per document.
MAX_CONVERSION_BYTES, MAX_CONVERSION_SECONDS = 1 << 30, 120.0

#: The module that each format needs; all are in the extra `files`.
MODULES = {
    CorpusFormat.PDF: "pypdfium2",
    CorpusFormat.DOCX: "mammoth",
    CorpusFormat.PPTX: "pptx",
    CorpusFormat.HTML: "lxml",
    CorpusFormat.XLSX: "openpyxl",
}

_READERS = {
    CorpusFormat.PDF: read_pdf,
    CorpusFormat.DOCX: read_docx,
    CorpusFormat.PPTX: read_pptx,
}


def is_readable(kind: CorpusFormat) -> bool:
    """Whether the package that a format needs is installed."""
    return kind not in MODULES or find_spec(MODULES[kind]) is not None


def read_document(
    source: Source, identifier: str, kind: CorpusFormat, encoding: str | None
) -> Table:
    """The table of a document: a row for each part that has text.

    The id of a part is ``report.pdf#page=3``. A damaged page or document is a bad row.
    """
    try:
        if appearance := foreign(source.head, kind):
            raise CorpusError(appearance)
        contents: Contents = converter.run(convert, source.on_disk(), kind, encoding)
    except CorpusError as error:
        contents = Contents("", [], fault=str(error))
    readable = [part for part in contents.sections if part.fault or part.text.strip()]
    left_out = LeftOut()
    for part in contents.sections:
        if contents.if_blank and part not in readable:
            left_out.add(f"{part.kind} without text", str(part.number))
    remark = "; ".join([contents.remark, *([contents.if_blank] if left_out else [])])
    left_out.update(contents.left_out)
    title = one_line(contents.title) or without_gz(PurePath(identifier)).stem
    rows = [_row(source.name, identifier, title, part) for part in readable]
    fault = contents.fault
    if not fault and not readable:
        fault = "; ".join(filter(None, ("has no text", contents.if_blank)))
    if fault:  # the parts before it are kept
        rows.append(BadFileError(source.name, fault, identifier))
    return Table(source.name, COLUMNS, iter(rows), remark=remark, left_out=left_out)


def _row(source: str, file: str, title: str, section: Section) -> Row | BadRowError:
    kind, number, text, heading, fault = section
    name, location = f"{file}#{kind}={number}", f"{source}, {kind} {number}"
    if fault:
        return BadRowError(location, fault, name)
    if kind == "section":
        title = f"{title}: {heading}" if heading and heading != title else title
        part: dict[str, object] = {"section": heading} if heading else {}
    else:
        title, part = f"{title}, {kind} {number}", {kind: number}
    return Row(location, {"id": name, "title": title, "text": text, "file": file, **part})


def convert(path: Path, kind: CorpusFormat, encoding: str | None) -> Contents:
    """The contents of a document, as far as the library for its format can read it."""
    sections: list[Section] = []
    contents, fault = Contents("", sections), ""
    try:
        with parsing(kind):
            is_html = kind is CorpusFormat.HTML
            contents = read_html(path, encoding) if is_html else _READERS[kind](path)
            sections.extend(contents.sections)  # keeps those before an error
    except CorpusError as error:
        fault = str(error)
    return replace(contents, sections=sections, fault=fault)


@contextmanager
def parsing(kind: CorpusFormat) -> Iterator[None]:
    """Turn whatever libraries raise for damaged files into a CorpusError."""
    try:
        yield
    except (CorpusError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {first_line(error)}"
        raise CorpusError(f"cannot be read as {kind.value.upper()}: {reason}") from None


class Converter:
    """The process that converts documents; it is started for the first one."""

    pid: int
    _executor: ProcessPoolExecutor | None = None

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in the process.

        Raises:
            CorpusError: the document needs too much time or memory.
        """
        was_used = self._executor is not None
        executor = self._executor or self._start()
        try:
            return executor.submit(function, *args).result(timeout=MAX_CONVERSION_SECONDS)
        except TimeoutError:
            self.stop()
            reason = f"takes longer than {MAX_CONVERSION_SECONDS:.0f} s to convert"
            raise CorpusError(reason) from None
        except (BrokenProcessPool, MemoryError):
            self.stop()
        except BaseException:  # Ctrl-C
            self.stop()
            raise
        if was_used:  # earlier documents may have used its memory
            return self.run(function, *args)
        limit = f"{MAX_CONVERSION_BYTES >> 20} MiB of memory"
        raise CorpusError(f"needs more than {limit} to be converted, or crashes the converter")

    def _start(self) -> ProcessPoolExecutor:
        context = get_context("spawn")  # a forked process would have the memory of this one
        # A process of any start method but fork runs the caller's script again, and imports
        # modules from the working directory, which may hold untrusted files; so does the process
        # that keeps track of semaphores, which the first executor starts.
        main, safe_path = sys.modules["__main__"], os.environ.get("PYTHONSAFEPATH", "")
        sys.modules["__main__"], os.environ["PYTHONSAFEPATH"] = ModuleType("__main__"), "1"
        try:
            executor = ProcessPoolExecutor(1, context, _prepare, (MAX_CONVERSION_BYTES,))
            self.pid = executor.submit(os.getpid).result()
        finally:
            sys.modules["__main__"], os.environ["PYTHONSAFEPATH"] = main, safe_path
        self._executor = executor
        return executor

    def stop(self) -> None:
        """End the process; the next document starts another one."""
        if self._executor is not None:
            with suppress(OSError):  # it has died
                os.kill(self.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
            self._executor.shutdown(wait=False)
            self._executor = None


#: Stopped whenever a corpus has been read.
converter = Converter()


def _prepare(max_bytes: int) -> None:
    """Limit the memory of the new process, and end it with the one that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other one, which kills this
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # libraries may print
        os.dup2(silent, stream)
    if sys.platform != "win32":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        if hard == resource.RLIM_INFINITY or hard > max_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (max_bytes, max_bytes))
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if parent := parent_process():
        parent.join()
    os._exit(1)
