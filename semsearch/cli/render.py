"""Renders results: a table for people, JSON lines, CSV and Parquet for programs."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.errors import ArgumentError
from semsearch.records import Explanation, Hit, Hits, HitScores, column_name, metadata_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PASSAGE_MAX_CHARACTERS = 300
#: The width of tables written to a file or a pipe, unless COLUMNS is set.
PIPED_WIDTH = 120
#: The maximum width of prose: longer lines are hard to read.
PROSE_WIDTH = 100
#: Separates two columns.
GAP = "  "

#: The columns of hits before those of their metadata, with their Arrow types.
HIT_COLUMNS = {
    "query": "string",
    "rank": "int64",
    "score": "float64",
    **dict.fromkeys(HitScores._fields, "float64"),
    "id": "string",
    "title": "string",
    "text": "string",
}

#: Control characters and bidirectional marks, with which a document could hide or fake output; and
#: surrogates, which cannot be encoded.
_MARKS = "\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[\x00-\x08\x0b-\x1f{_MARKS}]")


def visible(text: str) -> str:
    """A text on one line, without characters that could control a terminal."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def console() -> Console:
    """A console for tables; its width is COLUMNS, that of the terminal, or `PIPED_WIDTH`."""
    from rich.console import Console

    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    width = None if is_known else PIPED_WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False)


class Entry(NamedTuple):
    """A line of cells and a head, and the body below it."""

    cells: Sequence[str]
    head: Text
    body: Text


def print_entries(
    out: Console, headings: Sequence[str], entries: Sequence[Entry], indent: int | None = None
) -> None:
    """Print lines in columns, each with its body below it.

    Args:
        out: the console.
        headings: of the cells and the head; a leading > aligns a column to the right.
        entries: the lines and their bodies.
        indent: the indentation of bodies; None for the start of the second column.
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


def print_hits(
    format_name: str,
    results: Iterable[Hits],
    *,
    headings: bool,
    show: Sequence[str],
    fields: Sequence[str],
) -> None:
    """Print the hits of queries as they come; Parquet at the end, when the types are known.

    Args:
        format_name: ``table``, ``jsonl`` (a line per query), ``csv`` or ``parquet`` (a row per
            hit).
        results: the hits of each query.
        headings: whether tables start with their query.
        show: the fields that tables show.
        fields: the metadata fields of the index, the last columns of CSV and Parquet.
    """
    match format_name:
        case "jsonl":
            for hits in results:
                write_line(json_text(hits.to_dict()))
        case "csv":
            write_line(
                csv_line([*HIT_COLUMNS, *(column_name(name, HIT_COLUMNS) for name in fields)])
            )
            for hits in results:
                _print_csv(hits, fields)
        case "parquet":
            _write_parquet(results, fields)
        case _:
            out = console()
            for hits in results:
                _print_table(out, hits, heading=headings, show=show)


def _print_table(out: Console, hits: Hits, *, heading: bool, show: Sequence[str]) -> None:
    """Print a line per hit with rank, scores, title or id, and fields; below it, the passage."""
    from rich.text import Text

    if heading:
        out.print(Text(visible(hits.query), style="bold"))
    parts = hits.parts()
    entries = []
    for hit in hits:
        scores = hit.scores.to_dict()
        shown = [f"{scores[name]:.3f}" if name in scores else "" for name in parts]
        numbers = [str(hit.rank), f"{hit.score:.3f}", *shown]
        entries.append(Entry(numbers, _head(hit, show), _passage(hit)))
    if entries:
        title = "title" if any(hit.title for hit in hits) else "id"
        print_entries(out, [">", ">score", *(f">{name}" for name in parts), title], entries)
    else:
        out.print(Text("no hits"))
    for stage in hits.stages:
        line = f"{stage.name} {stage.milliseconds:.1f} ms"
        out.print(Text(line + (f": {stage.plan}" if stage.plan else ""), style="dim"))
    if heading:
        out.print()


def _print_csv(hits: Hits, fields: Sequence[str]) -> None:
    for hit in hits:
        scores = hit.scores.to_dict()
        parts = [f"{scores[name]:.6f}" if name in scores else "" for name in HitScores._fields]
        row = [hits.query, hit.rank, f"{hit.score:.6f}", *parts]
        row += [hit.document_id, hit.title, hit.text]
        write_line(csv_line([*row, *(_plain(hit.metadata.get(name)) for name in fields)]))


def _write_parquet(results: Iterable[Hits], fields: Sequence[str]) -> None:
    if sys.stdout.isatty():
        raise ArgumentError("write Parquet to a file: semsearch query … --format parquet > FILE")
    from semsearch.explore.export import write_parquet

    rows = []
    for hits in results:
        for hit in hits:
            found = {"query": hits.query, **hit.to_dict(), **hit.scores.to_dict()}
            row = {name: found.get(name) for name in HIT_COLUMNS}
            row |= {column_name(name, HIT_COLUMNS): hit.metadata[name] for name in hit.metadata}
            rows.append(row)
    names = [column_name(name, HIT_COLUMNS) for name in fields]
    as_json = write_parquet(sys.stdout.buffer, rows, HIT_COLUMNS, names)
    note_json_columns(as_json)


def _head(hit: Hit, show: Sequence[str]) -> Text:
    """The title or id, and the requested fields."""
    from rich.text import Text

    head = Text(visible(hit.title or hit.document_id), style="bold")
    for field in show:
        value = visible(_plain(_value(hit, field)))
        if value := value.removesuffix("T00:00:00"):  # dates, as stored in workbooks
            head.append(f"{GAP}{visible(field)}: {value}", style="not bold dim")
    return head


def _passage(hit: Hit) -> Text:
    """The passage for people, with its explanation and duplicates."""
    from rich.text import Text

    text = Text(shortened(visible(hit.text)))
    notes = []
    if hit.explanation is not None:
        notes = _reasons(hit, hit.explanation)
        if hit.explanation.sentence is not None:
            start, end = (place - hit.passage.start for place in hit.explanation.sentence)
            sentence = visible(hit.text[start:end])
            if sentence != text.plain:
                notes.append(f"nearest sentence: {shortened(sentence)}")
    if hit.duplicates:
        notes.append(f"duplicates: {', '.join(map(visible, hit.duplicates))}")
    if notes:
        text.append(f"\n{'; '.join(notes)}", style="dim")
    return text


def _reasons(hit: Hit, why: Explanation) -> list[str]:
    """Why a hit was found: its ranks, and the words that it shares with the query."""
    ranks = {"meaning": why.dense_rank, "words": why.bm25_rank}
    by = [f"{rank} by {name}" for name, rank in ranks.items() if rank is not None]
    notes = [f"rank {', '.join(by)}"] if by else []
    if hit.scores.reranked is not None:
        notes.append(f"reranked from {why.first_rank}")
    if why.words:
        notes.append(f"shared words: {', '.join(map(visible, why.words))}")
    return notes


def note(message: str) -> None:
    """Print a message on standard error, on one line."""
    import click

    click.echo(visible(message), err=True)


def note_json_columns(names: Sequence[str]) -> None:
    """Report which columns of a Parquet file are JSON text."""
    if names:
        columns = ", ".join(names)
        note(f"written as JSON text, since no Parquet type fits all values: {columns}")


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON, on one line unless indented; characters that control a terminal are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def csv_line(row: Iterable[Any]) -> str:
    """A row of CSV without its line end."""
    buffer = io.StringIO()
    # With the default line end: with another, Python 3.11 leaves line breaks in cells unquoted.
    csv.writer(buffer).writerow(row)
    return buffer.getvalue().removesuffix("\r\n")


def write_line(line: str) -> None:
    """Print a line for programs, unchanged, and flush it."""
    import click

    # Without `color`, click strips ANSI codes from piped output.
    click.echo(line, color=True)


def _value(hit: Hit, field: str) -> Any:
    built_in = {"id": hit.document_id, "title": hit.title}
    return built_in[field] if field in built_in else hit.metadata.get(metadata_name(field))


def _plain(value: Any) -> str:
    """A metadata value as text: the items of a list, nothing for null."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False)


def shortened(text: str, max_characters: int = PASSAGE_MAX_CHARACTERS) -> str:
    """A passage, truncated for a table."""
    if len(text) <= max_characters:
        return text
    return text[:max_characters].rsplit(" ", 1)[0] + "…"
