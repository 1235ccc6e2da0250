"""``semsearch query``: search an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from semsearch.cli.options import (
    Duration,
    complete_file,
    existing_index,
    format_option,
    index_option,
    space_option,
    where_option,
)
from semsearch.cli.preload import preload_for_queries
from semsearch.cli.render import note, print_hits
from semsearch.errors import ArgumentError, FilterError, SemsearchError, with_code
from semsearch.records import BUILT_IN_FIELDS, Hits, SearchMode, metadata_field, qualified

if TYPE_CHECKING:
    from semsearch.index import Index

QUERIES_AT_ONCE = 256
QUERY_MAX_CHARACTERS = 1 << 20


@click.command("query")
@click.argument("texts", metavar="TEXT...", nargs=-1)
@index_option
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
@click.option(
    "--require",
    metavar="PHRASE",
    multiple=True,
    help="Only documents with a passage that contains this phrase; may be repeated.",
)
@click.option("--min-score", type=float, metavar="S", help="Drop hits with a lower score.")
@click.option(
    "--per-document",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Maximum number of passages per document.",
)
@click.option("--collapse-duplicates", is_flag=True, help="Drop near-duplicates of better hits.")
@click.option(
    "--rerank",
    "reranker",
    metavar="MODEL",
    shell_complete=complete_file,
    help="A cross-encoder, by name or folder, that reorders the first documents.",
)
@click.option(
    "--rerank-budget",
    type=Duration(),
    help="Time limit per query; the best-ranked documents are read first.",
)
@click.option("--like", metavar="ID", multiple=True, help="A document that hits should resemble.")
@click.option(
    "--unlike", metavar="ID", multiple=True, help="A document that hits should not resemble."
)
@format_option(
    "table",
    "jsonl",
    "csv",
    "parquet",
    description="A table for people, JSON with one line per query, or one row per hit.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Show ranks, matched words and the nearest sentence of each hit, and timings.",
)
@click.option(
    "--show",
    metavar="FIELD",
    multiple=True,
    help="A metadata field to show in the table; may be repeated.",
)
@click.option(
    "--queries",
    metavar="FILE",
    shell_complete=complete_file,
    help="A file with one query per line; - for standard input.",
)
@click.option(
    "--mmr",
    type=float,
    metavar="W",
    help="Diversify hits (maximal marginal relevance); 1 is relevance only, 0 diversity only.",
)
def command(
    texts: tuple[str, ...],
    directory: Path | None,
    space: str | None,
    reranker: str | None,
    format_name: str,
    show: tuple[str, ...],
    queries: str | None,
    **options: Any,
) -> None:
    """Find documents with a similar meaning to TEXT; the vectors of several texts are added.

    Each document is listed once, with its best passage. The score is the cosine; with --mode bm25
    that of BM25, and with --mode hybrid the mean of both standard scores. Without TEXT, a
    terminal prompts for queries until the end of input (Ctrl-D), and loads the model once.

    \b
    semsearch query "ways to save money"
    semsearch query "a heist goes wrong" -k 5 --show year \\
        --where "year >= 1990 and genres in ('Crime', 'Thriller')"
    semsearch query '"side effects" of aspirin -children' --mode hybrid --explain
    semsearch query "side effects" --rerank ./my-cross-encoder --rerank-budget 300ms
    semsearch query --like film-12 --unlike film-7 --mmr 0.7
    semsearch query --queries questions.txt --format jsonl > answers.jsonl
    semsearch query --queries questions.txt --format parquet > answers.parquet
    """
    if texts and queries is not None:
        raise ArgumentError("give a TEXT or --queries, not both")
    if options["explain"] and format_name in ("csv", "parquet"):
        raise ArgumentError("--explain needs --format table or jsonl")
    if show and format_name != "table":
        raise ArgumentError("--show needs --format table; the others have all fields")
    has_examples = bool(options["like"] or options["unlike"])
    encodes = bool(texts or queries or not has_examples) and options["mode"] != "bm25"
    directory = existing_index(directory)
    encoders = preload_for_queries(directory, space) if encodes else []
    from semsearch.index import Index  # while the model loads

    with Index.open(directory, encoders) as index:
        options["space"] = index.space(space, complete=True).name
        if reranker:
            from semsearch.encoders import load_reranker

            options["rerank"] = load_reranker(reranker)
        fields = index.fields()
        if queries is not None:
            results = _answered(index, queries, options)
        elif texts or has_examples:
            results = iter([index.search(texts, **options)])
        elif sys.stdin.isatty() and sys.stdout.isatty():
            results = _conversation(index, options)
        else:
            raise ArgumentError("give a TEXT to search for, or --queries FILE")
        print_hits(
            format_name,
            results,
            headings=queries is not None,
            show=_shown(show, fields),
            fields=fields,
        )


def _shown(show: Sequence[str], known: Sequence[str]) -> list[str]:
    """The fields to show, named as in filters; `known` are the names of the metadata fields."""
    fields = [*map(metadata_field, known), *BUILT_IN_FIELDS]
    shown = list(map(qualified, show))
    for name, field in zip(show, shown, strict=True):
        if field not in fields:
            raise FilterError(f"no field '{name}' (fields: {', '.join(fields)})")
    return shown


def _answered(index: Index, file: str, options: dict[str, Any]) -> Iterator[Hits]:
    """The hits of each query of a file, or of standard input, whose lines may come slowly.

    Raises:
        ArgumentError: a query cannot be used; those of the blocks before it are answered.
    """
    from semsearch.corpus import text_lines

    path = None if file == "-" else Path(file)
    lines = text_lines(path, None, QUERY_MAX_CHARACTERS)
    queries = ((n, query) for n, line in lines if (query := line.removeprefix("\ufeff").strip()))
    at_once = 1 if path is None else QUERIES_AT_ONCE
    while block := list(islice(queries, at_once)):
        try:
            yield from index.search_many([query for _, query in block], **options)
        except ArgumentError as error:
            numbers = f"{block[0][0]}-{block[-1][0]}" if len(block) > 1 else str(block[0][0])
            raise ArgumentError(f"{file}:{numbers}: {error}") from error


def _conversation(index: Index, options: dict[str, Any]) -> Iterator[Hits]:
    """The hits of queries entered on a terminal, until the end of input."""
    with suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 - gives `input` its line editing and history
    while True:
        try:
            line = input("query> ")
        except EOFError:
            click.echo()
            return
        if line.strip():
            try:
                yield index.search(line, **options)
            except SemsearchError as error:
                note(f"Error: {with_code(error)}")
