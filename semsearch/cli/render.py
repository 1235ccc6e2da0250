"""How results look: a table for people, JSON lines and CSV for programs."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from semsearch.filters import metadata_name
from semsearch.records import Hit, Hits, column_name

if TYPE_CHECKING:
    from rich.console import Console

PASSAGE_MAX_CHARACTERS = 300

#: Control characters, and the marks that reorder text: a document could hide or fake output. And
#: surrogates, which cannot be written.
_MARKS = "\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f{_MARKS}]")
#: Of a cell on a terminal, its line breaks and tabs besides.
_UNSAFE_IN_CELL = re.compile(f"[\x00-\x1f{_MARKS}]")


def visible(text: str) -> str:
    """One line of text that cannot steer a terminal."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def console() -> Console:
    """Where tables go: standard output, at a terminal's width or, elsewhere, a good one."""
    from rich.console import Console

    out = Console(highlight=False, markup=False, emoji=False)
    if not out.is_terminal:
        out.width = 120
    return out


class HitsOutput(Protocol):
    """Prints the answers to queries, one after another."""

    def add(self, hits: Hits, *, heading: bool) -> None:
        """Print the answers to one query, under its text if `heading`."""


def hits_output(format_name: str, show: Sequence[str], fields: Sequence[str]) -> HitsOutput:
    """The output of that name: ``table`` (with the fields to `show`), ``jsonl`` or ``csv``."""
    if format_name == "table":
        return HitsAsTable(show)
    return HitsAsJsonLines() if format_name == "jsonl" else HitsAsCsv(fields)


class HitsAsTable:
    """Rank, score, title or id, passage, and the metadata that was asked for."""

    def __init__(self, show: Sequence[str]) -> None:
        self._show = show
        self._console = console()

    def add(self, hits: Hits, *, heading: bool) -> None:
        """Print the answers to one query."""
        from rich.table import Table
        from rich.text import Text

        if heading:
            self._console.print(Text(visible(hits.query), style="bold"))
        if not hits:
            self._console.print(Text("no hits"))
            return
        table = Table(box=None, pad_edge=False, header_style="dim")
        table.add_column("", justify="right", style="dim")
        table.add_column("score", justify="right")
        titled = any(hit.title for hit in hits)
        table.add_column("title" if titled else "id", max_width=32, overflow="fold")
        for name in self._show:
            table.add_column(visible(name), max_width=24, overflow="fold")
        table.add_column("passage", ratio=1, overflow="fold")
        for hit in hits:
            cells = [str(hit.rank), f"{hit.score:.3f}", visible(hit.title or hit.document_id)]
            cells += [visible(_plain(_value(hit, field))) for field in self._show]
            table.add_row(*map(Text, [*cells, shortened(visible(hit.text))]))
        self._console.print(table)
        if heading:
            self._console.print()


class HitsAsJsonLines:
    """One line a query: ``{"query": …, "hits": [{"rank", "score", "id", …}, …]}``."""

    def add(self, hits: Hits, *, heading: bool) -> None:
        """Print the answers to one query."""
        del heading  # each line carries its query
        line = {"query": hits.query, "hits": [hit.to_dict() for hit in hits]}
        write_line(json_text(line))


class HitsAsCsv:
    """One row a hit; the metadata fields of the index are the last columns."""

    HEADER = ("query", "rank", "score", "id", "title", "text")

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = fields
        self._write([*self.HEADER, *(column_name(name, self.HEADER) for name in fields)])

    def add(self, hits: Hits, *, heading: bool) -> None:
        """Print the answers to one query."""
        del heading  # each row carries its query
        for hit in hits:
            start = [hits.query, hit.rank, f"{hit.score:.6f}", hit.document_id, hit.title, hit.text]
            self._write([*start, *(_plain(hit.metadata.get(name)) for name in self._fields)])

    def _write(self, row: Iterable[Any]) -> None:
        write_line(csv_line(row))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON on one line, in which no character can steer a terminal: such are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def csv_line(row: Iterable[Any]) -> str:
    """A row of CSV without its line end: exact, but on a terminal with what steers it escaped."""
    if sys.stdout.isatty():
        row = (_escaped(cell) if isinstance(cell, str) else cell for cell in row)
    buffer = io.StringIO()
    # With its own line end: with another one, Python 3.11 leaves line breaks in cells unquoted.
    csv.writer(buffer).writerow(row)
    return buffer.getvalue().removesuffix("\r\n")


def _escaped(cell: str) -> str:
    return _UNSAFE_IN_CELL.sub(lambda found: ascii(found[0])[1:-1], cell)


def write_line(line: str) -> None:
    """Print a line for programs, at once and as it is."""
    import click

    click.echo(line, color=True)  # without it, click takes the ANSI codes out of what is piped


def _value(hit: Hit, field: str) -> Any:
    built_in = {"id": hit.document_id, "title": hit.title}
    return built_in[field] if field in built_in else hit.metadata.get(metadata_name(field))


def _plain(value: Any) -> str:
    """A metadata value in a cell: lists by their items, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def shortened(text: str, max_characters: int = PASSAGE_MAX_CHARACTERS) -> str:
    """A passage for a table."""
    if len(text) <= max_characters:
        return text
    return text[:max_characters].rsplit(" ", 1)[0] + " …"
