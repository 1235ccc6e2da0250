"""Text, tables and records in a terminal or a pipe."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PASSAGE_MAX_CHARACTERS = 300
#: The width of tables written to a file or a pipe, unless COLUMNS is set.
PIPED_WIDTH = 120
#: The maximum width of prose: longer lines are hard to read.
PROSE_WIDTH = 100
#: Separates two columns.
GAP = "  "

#: Control characters and bidirectional marks, with which a document could hide or fake output; and
#: surrogates, which cannot be encoded.
_MARKS = "\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f{_MARKS}]")


def visible(text: str) -> str:
    """A text on one line, without characters that could control a terminal."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def shortened(text: str, max_characters: int = PASSAGE_MAX_CHARACTERS) -> str:
    """A visible text, truncated for a table."""
    text = visible(text)
    if len(text) <= max_characters:
        return text
    return text[:max_characters].rsplit(" ", 1)[0] + "…"


def say(message: str) -> None:
    """Print a message on standard output, on one line."""
    click.echo(visible(message))


def note(message: str) -> None:
    """Print a message on standard error, on one line."""
    click.echo(visible(message), err=True)


def console() -> Console:
    """A console for tables; its width is COLUMNS, that of the terminal, or `PIPED_WIDTH`."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    width = None if is_known else PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


def grid(headings: Iterable[str]) -> Table:
    """An empty table without lines; a leading > aligns a column to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        is_right = heading.startswith(">")
        table.add_column(
            visible(heading.removeprefix(">")),
            justify="right" if is_right else "left",
            overflow="fold",
        )
    return table


class Entry(NamedTuple):
    """A line of cells and a head, and the body below it."""

    cells: Sequence[str]
    head: Text
    body: Text


def print_entries(
    out: Console, headings: Sequence[str], entries: Sequence[Entry], indent: int | None = None
) -> None:
    """Print lines in columns, each with its body below it.

    A leading > of a heading aligns a column to the right. Bodies start at `indent`, or at the
    second column.
    """
    from rich.text import Text

    right = [heading.startswith(">") for heading in headings]
    names = [heading.removeprefix(">") for heading in headings]
    rows = [names[:-1], *(entry.cells for entry in entries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    margin = " " * (widths[0] + len(GAP) if indent is None else indent)

    def lead(cells: Sequence[str], style: str) -> Text:
        sides = zip(cells, widths, right, strict=False)
        padded = [cell.rjust(width) if side else cell.ljust(width) for cell, width, side in sides]
        return Text.assemble((padded[0], "dim"), *((GAP + cell, style) for cell in padded[1:]), GAP)

    _print_beside(out, lead(names[:-1], "dim"), Text(names[-1], style="dim"))
    for entry in entries:
        _print_beside(out, lead(entry.cells, ""), entry.head)
        if entry.body:
            _print_beside(out, Text(margin), entry.body)


def _print_beside(out: Console, lead: Text, body: Text) -> None:
    """Print a text after its lead; further lines are indented by the width of the lead."""
    from rich.text import Text

    width = min(out.width, PROSE_WIDTH) - len(lead)
    for line in body.wrap(out, max(width, 1), overflow="fold"):
        line.rstrip()
        out.print(Text.assemble(lead, line), soft_wrap=True)
        lead = Text(" " * len(lead))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON, on one line unless indented; characters that control a terminal are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def write_json_line(record: Any) -> None:
    """Print a record as a line of JSON."""
    _write_line(json_text(record))


def write_csv(columns: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Print a table as CSV, row by row."""
    for row in chain([columns], rows):
        buffer = io.StringIO()
        # With the default line end: with another, Python 3.11 leaves line breaks unquoted.
        csv.writer(buffer).writerow(row)
        _write_line(buffer.getvalue().removesuffix("\r\n"))


def _write_line(line: str) -> None:
    """Print a line for programs, unchanged, and flush it."""
    # Without `color`, click strips ANSI codes from piped output.
    click.echo(line, color=True)
