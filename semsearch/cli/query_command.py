"""``semsearch query``: search an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch.cli.options import (
    FILE,
    NAME_OR_FILE,
    existing_index,
    format_option,
    is_given,
    optional_index_option,
    repeated_option,
    space_option,
    where_option,
)
from semsearch.cli.preload import preload_for_queries
from semsearch.cli.render import (
    GAP,
    Entry,
    console,
    note,
    print_entries,
    shortened,
    visible,
    write_csv,
    write_json_line,
)
from semsearch.errors import ArgumentError, ColumnNotFoundError, FilterError, quantity
from semsearch.records import (
    BUILT_IN_FIELDS,
    Hit,
    Hits,
    HitScores,
    SearchMode,
    metadata_field,
    metadata_name,
)

if TYPE_CHECKING:
    from rich.text import Text

    from semsearch.index import Index

QUERIES_AT_ONCE = 256
QUERY_MAX_CHARACTERS = 1 << 20


@click.command("query")
@click.argument("texts", metavar="TEXT... [FILE]...", nargs=-1)
@optional_index_option
@click.option("-k", default=10, show_default=True, metavar="N", help="Number of hits.")
@where_option
@space_option
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SearchMode]),
    default="semantic",
    show_default=True,
    help='By vectors, by words, or both. In the latter two, "a phrase" raises passages that '
    "contain it, and -word excludes.",
)
@repeated_option("--require", "require", "PHRASE", "Only documents that contain this phrase.")
@click.option("--min-score", type=float, metavar="S", help="Drop hits with a lower score.")
@click.option(
    "--per-document", default=1, show_default=True, metavar="N", help="Most passages per document."
)
@click.option("--collapse-duplicates", is_flag=True, help="Drop near-duplicates of better hits.")
@click.option(
    "--rerank",
    "reranker",
    metavar="MODEL",
    type=NAME_OR_FILE,
    help="A cross-encoder, by name or folder, that reorders the first documents.",
)
@click.option("--rerank-budget", metavar="SECONDS", type=float, help="Its time limit per query.")
@repeated_option("--like", "like", "ID", "A document that hits should resemble.")
@repeated_option("--unlike", "unlike", "ID", "A document that hits should not resemble.")
@format_option(
    "table",
    "jsonl",
    "csv",
    description="A table, a line of JSON per query, or a row per hit with the columns of --output.",
)
@click.option(
    "--output",
    metavar="FILE",
    type=FILE,
    help="Write hits with the columns of their table: .xlsx, .csv, .parquet or .jsonl.",
)
@click.option(
    "--explain", is_flag=True, help="Show ranks, shared words, the nearest sentence, and timings."
)
@repeated_option("--show", "show", "FIELD", "A field to show in the table; may be repeated.")
@click.option(
    "--queries",
    metavar="FILE",
    type=NAME_OR_FILE,
    help="A table with a column of queries, or one query per line; - is standard input.",
)
@click.option(
    "--mmr", type=float, metavar="W", help="Diversify hits: 1 is relevance only, 0 diversity only."
)
def query_command(
    texts: tuple[str, ...],
    directory: Path | None,
    space: str | None,
    reranker: str | None,
    format_name: str,
    show: tuple[str, ...],
    queries: str | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Find documents with a similar meaning to TEXT; the vectors of several texts are added.

    Each document is listed once, with its best passage. The score is the cosine; with --mode bm25
    that of BM25, and with --mode hybrid the mean of both standard scores.

    A FILE (or a folder, with a slash at its end) is searched in place of an index: it is indexed in
    the cache, as by `semsearch open`, and compared again at each call.

    \b
    semsearch query "ways to save money"
    semsearch query "refund" survey.xlsx
    semsearch query "refund" survey.xlsx -k 100 --output refunds.xlsx
    semsearch query "a heist goes wrong" -k 5 --show year \\
        --where "year >= 1990 and genres in ('Crime', 'Thriller')"
    semsearch query '"side effects" of aspirin -children' --mode hybrid --explain
    semsearch query "side effects" --rerank ./my-cross-encoder --rerank-budget 0.3
    semsearch query --like film-12 --unlike film-7 --mmr 0.7
    semsearch query --queries questions.txt --format jsonl > answers.jsonl
    """
    has_examples = bool(options["like"] or options["unlike"])
    is_query = queries is not None or has_examples
    texts, files = (texts, ()) if is_given("directory") else _split(texts, needs_text=not is_query)
    if texts and queries is not None:
        raise ArgumentError("give a TEXT or --queries, not both")
    if not texts and queries is None and not has_examples:
        raise ArgumentError("give a TEXT to search for, or --queries FILE")
    if options["explain"] and format_name == "csv":
        raise ArgumentError("--explain needs --format table or jsonl")
    if output and (options["explain"] or is_given("format_name")):
        raise ArgumentError("--output writes the format of its suffix, without explanations")
    if show and (format_name != "table" or output):
        raise ArgumentError("--show needs --format table; the others have all fields")
    encodes = bool(texts or queries) and options["mode"] != "bm25"
    with _opened(directory, files, space, encodes) as index:
        options["space"] = index.space(space, complete=True).name
        if reranker:
            from semsearch.encoders import load_reranker

            options["rerank"] = load_reranker(reranker)
        shown = _shown(show, index.fields())
        results = (
            iter([index.search(texts, **options)])
            if queries is None
            else _answered(index, queries, options)
        )
        if output:
            from semsearch.cli.export_command import report
            from semsearch.explore.export import export_hits

            report(export_hits(index, results, output), "hit")
        elif format_name == "csv":
            from semsearch.explore.export import csv_cell, hit_table

            _, columns, rows = hit_table(index, results, HitScores._fields)
            write_csv(columns, ([csv_cell(row.get(name)) for name in columns] for row in rows))
        else:
            for hits in results:
                if format_name == "jsonl":
                    write_json_line(hits.to_dict())
                else:
                    _print_table(hits, shown, heading=queries is not None)
        if files:
            from semsearch.cli.open_command import how_to_keep

            note(how_to_keep(files, index.path))


def _split(
    arguments: tuple[str, ...], *, needs_text: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts, and the files or folders after them."""
    count = len(arguments)
    while count > needs_text and _is_corpus(arguments[count - 1]):
        count -= 1
    return arguments[:count], arguments[count:]


def _is_corpus(argument: str) -> bool:
    """Whether it names a file, or a folder by a path; a single word may be a query."""
    is_path = any(separator in argument for separator in filter(None, (os.sep, os.altsep)))
    return os.path.isfile(argument) or (is_path and os.path.isdir(argument))  # noqa: PTH112, PTH113


def _opened(
    directory: Path | None, files: Sequence[str], space: str | None, encodes: bool
) -> Index:
    """The index to search, or that of files in the cache."""
    if files:
        from semsearch.cli.open_command import synced_index

        return synced_index(files)
    directory = existing_index(directory)
    encoders = preload_for_queries(directory, space) if encodes else []
    from semsearch.index import Index  # while the model loads

    return Index.open(directory, encoders)


def _shown(show: Sequence[str], known: Sequence[str]) -> list[str]:
    """The fields to show, named as in filters; `known` are the names of the metadata fields."""
    fields = [*map(metadata_field, known), *BUILT_IN_FIELDS]
    shown = []
    for name in show:
        # Without an unnecessary prefix.
        field = name if name in BUILT_IN_FIELDS else metadata_field(metadata_name(name))
        if field not in fields:
            raise FilterError(f"no field '{name}' (fields: {', '.join(fields)})")
        shown.append(field)
    return shown


def _answered(index: Index, file: str, options: dict[str, Any]) -> Iterator[Hits]:
    """The hits of each query of a file, or of standard input, whose lines may come slowly."""
    path = None if file == "-" else Path(file)
    queries = _queries(path)
    at_once = 1 if path is None else QUERIES_AT_ONCE
    while block := list(islice(queries, at_once)):
        yield from index.search_many(block, **options)


def _queries(path: Path | None) -> Iterator[str]:
    """The queries of a table, or the lines of another file."""
    from semsearch.corpus import good_rows, open_table, text_lines
    from semsearch.corpus.folder import is_table
    from semsearch.corpus.formats import format_by_name
    from semsearch.corpus.roles import QUERY, find_column, listed

    if path is None or format_by_name(path) is None or not is_table(path):
        for _, line in text_lines(path, None, QUERY_MAX_CHARACTERS):
            if query := line.removeprefix("\ufeff").strip():
                yield query
        return
    with open_table(path) as table:
        column = find_column(table.columns, (*QUERY, "text"))
        is_bare = column is None and len(table.columns) == 1
    if column is None and not is_bare:
        expected = ", ".join((*QUERY, "text"))
        raise ColumnNotFoundError(
            f"{path}: no column of queries (columns: {listed(table.columns)}; expected: {expected})"
        )
    with open_table(path, header=False if is_bare else None) as table:
        for row in good_rows(table):
            if query := str(row.fields.get(column or table.columns[0]) or "").strip():
                yield query


def _print_table(hits: Hits, show: Sequence[str], *, heading: bool) -> None:
    """Print a line per hit with rank, scores, title or id, and fields; below it, the passage."""
    from rich.text import Text

    out = console()
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
    repeated = len(hits) - len({hit.text for hit in hits})
    if repeated:
        note(
            f"{quantity(repeated, 'hit')} with the text of a better one; "
            "--collapse-duplicates leaves these out"
        )
    for stage in hits.stages:
        out.print(Text(f"{stage.name} {stage.milliseconds:.1f} ms", style="dim"))
    if heading:
        out.print()


def _head(hit: Hit, show: Sequence[str]) -> Text:
    """The title or id, and the requested fields."""
    from rich.text import Text

    head = Text(visible(hit.title or hit.document_id), style="bold")
    built_in = {"id": hit.document_id, "title": hit.title}
    for field in show:
        value = built_in[field] if field in built_in else hit.metadata.get(metadata_name(field))
        if text := visible(_plain(value)).removesuffix("T00:00:00"):  # dates of workbooks
            head.append(f"{GAP}{visible(field)}: {text}", style="not bold dim")
    return head


def _passage(hit: Hit) -> Text:
    """The passage for people, with its explanation and duplicates."""
    from rich.text import Text

    text = Text(shortened(hit.text))
    notes = []
    if why := hit.explanation:
        ranks = {"meaning": why.dense_rank, "words": why.bm25_rank}
        by = [f"{rank} by {name}" for name, rank in ranks.items() if rank is not None]
        notes += [f"rank {', '.join(by)}"] if by else []
        if hit.scores.reranked is not None:
            notes.append(f"reranked from {why.first_rank}")
        if why.words:
            notes.append(f"shared words: {', '.join(why.words)}")
        if why.sentence:
            start, end = (place - hit.passage.start for place in why.sentence)
            if (sentence := hit.text[start:end]) != hit.text:
                notes.append(f"nearest sentence: {shortened(sentence)}")
    if hit.duplicates:
        notes.append(f"duplicates: {', '.join(hit.duplicates)}")
    if notes:
        text.append(f"\n{visible('; '.join(notes))}", style="dim")
    return text


def _plain(value: Any) -> str:
    """A metadata value as text: the items of a list, nothing for null."""
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)
