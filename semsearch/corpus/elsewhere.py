"""Reads a corpus on other machines, and here what they cannot read, in the order of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from semsearch.corpus.documents import Notify, OnBadRow
from semsearch.corpus.parts import Found, Part, ReadPart, Version, WholeFile, read_here
from semsearch.corpus.sources import Progress
from semsearch.errors import BadRowError
from semsearch.records import Document

#: A unit of reading: a part of a file, a small file, or documents that are read here.
Unit = Part | WholeFile | Iterator[Document]

#: Reads units elsewhere, and yields each with the result; None for documents.
ReadUnits = Callable[[Iterator[Unit]], Iterator[tuple[Unit, Any]]]


class UnitReader:
    """Yields the documents of units, or what other machines have made of them.

    Args:
        read: reads units elsewhere.
        read_whole: reads a small file here.
        notify: called with remarks.
        progress: updated while reading.
    """

    def __init__(
        self,
        read: ReadUnits,
        read_whole: Callable[[WholeFile, OnBadRow], Iterator[Document]],
        notify: Notify,
        progress: Progress,
    ) -> None:
        self._read = read
        self._read_whole = read_whole
        self._notify = notify
        self._progress = progress
        self._finished: Version | None = None  # a file whose rest is read here

    def documents(self, units: Iterator[Unit], taken: int, on_bad_row: OnBadRow) -> Iterator[Any]:
        """The documents, in order.

        Args:
            units: the units to read.
            taken: the number of first rows to skip, which have been read before.
            on_bad_row: called with the error of each other row.
        """
        left = taken

        def is_taken() -> bool:
            nonlocal left
            left -= 1
            return left >= 0

        def skipping(error: BadRowError) -> None:
            if not is_taken():
                on_bad_row(error)

        for unit, found in self._read(unit for unit in units if not self._is_finished(unit)):
            if not self._is_finished(unit):
                for document in self._unit(unit, found, skipping):
                    if not is_taken():
                        yield document
                self._advance(unit)

    def _unit(self, unit: Unit, found: Any, on_bad_row: OnBadRow) -> Iterable[Any]:
        if not isinstance(unit, (Part, WholeFile)):
            return unit
        if isinstance(found, ReadPart):
            for remark in found.remarks:
                self._notify(remark)
            return found.documents
        if isinstance(unit, WholeFile):
            return self._read_whole(unit, on_bad_row)
        if found is Found.BAD:
            return read_here(unit, on_bad_row)
        self._finished = unit.file
        return read_here(unit.rest(), on_bad_row)

    def _is_finished(self, unit: Unit) -> bool:
        return isinstance(unit, Part) and unit.file is self._finished

    def _advance(self, unit: Unit) -> None:
        if not isinstance(unit, (Part, WholeFile)):
            return
        if isinstance(unit, Part) and not unit.is_last and not self._is_finished(unit):
            self._progress.position = unit.end
        else:
            self._progress.position = unit.file.size
            self._progress.next_file()
