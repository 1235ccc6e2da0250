"""``semsearch query``: texts in, hits out."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.options import (
    existing_index,
    format_option,
    index_option,
    no_encoder_option,
    space_option,
)
from semsearch.cli.render import hits_output, visible
from semsearch.errors import ArgumentError, SemsearchError
from semsearch.filters import BUILT_IN_FIELDS, metadata_field, qualified
from semsearch.preload import preload_for_queries
from semsearch.protocols import Reranker
from semsearch.records import SearchMode

QUERIES_AT_ONCE = 256
QUERY_MAX_CHARACTERS = 1 << 20
#: How many blank lines of a file of queries a message lists.
LINES_SHOWN = 10


@click.command("query", cls=Command)
@click.argument("text", required=False)
@index_option
@click.option("-k", default=10, show_default=True, metavar="N", help="How many documents.")
@click.option("--where", metavar="EXPR", help="Only documents whose metadata meet this.")
@space_option
@no_encoder_option
@click.option(
    "--mode",
    type=click.Choice([mode.value for mode in SearchMode]),
    default="semantic",
    show_default=True,
    help="By meaning, by words, or both.",
)
@format_option(
    "table", "jsonl", "csv", description="For people, or one line a query, or one row a hit."
)
@click.option(
    "--rerank",
    metavar="MODEL",
    help="A cross-encoder, by name or folder, that reorders the first 100 documents.",
)
@click.option("--show", metavar="FIELD", multiple=True, help="A field for the table.")
@click.option(
    "--queries", metavar="FILE", help="A file with one query a line; - for standard input."
)
@click.option("--encoding", metavar="NAME", help="The encoding of that file.  [default: UTF-8]")
def command(
    text: str | None,
    directory: Path | None,
    k: int,
    where: str | None,
    space: str | None,
    mode: str,
    rerank: str | None,
    format_name: str,
    show: tuple[str, ...],
    queries: str | None,
    encoding: str | None,
) -> None:
    """Find the documents that mean what TEXT means.

    Each document comes once, by its best passage; the score is the cosine. Without TEXT, on a
    terminal, it asks for queries until the end of input (Ctrl-D).

    \b
    semsearch query "ways to save money"
    semsearch query "a heist goes wrong" -k 5 --show year \\
        --where "year >= 1990 and genres in ('Crime', 'Thriller')"
    semsearch query "side effects" --mode hybrid --rerank ./my-cross-encoder
    semsearch query --queries questions.txt --format jsonl > answers.jsonl
    """
    if text is not None and queries is not None:
        raise ArgumentError("give a TEXT or --queries, not both")
    if encoding is not None and queries is None:
        raise ArgumentError("--encoding is about the file of --queries")
    directory = existing_index(directory)
    encoders = preload_for_queries(directory, space) if mode != SearchMode.BM25.value else []
    from semsearch.retriever import Retriever  # while the model loads

    with Retriever.open(directory, space, encoders) as retriever:
        known = retriever.index.fields()
        output = hits_output(format_name, _shown(show, known), known)
        search = partial(
            retriever.search_many,
            k=k,
            where=where,
            mode=mode,
            rerank=_reranker(rerank),
        )
        if text is not None:
            output.add(search([text])[0], heading=False)
        elif queries is not None:
            lines = _lines(queries, encoding)
            while block := list(islice(lines, QUERIES_AT_ONCE)):
                for hits in search(block):
                    output.add(hits, heading=True)
        elif sys.stdin.isatty():
            for line in _typed():
                try:
                    output.add(search([line])[0], heading=False)
                except SemsearchError as error:
                    _tell(f"Error: {error}")
        else:
            raise ArgumentError("give a TEXT to search for, or --queries FILE")


def _shown(show: Sequence[str], known: Sequence[str]) -> list[str]:
    """The fields to show as filters call them; `known` are the names of the metadata fields."""
    fields = [*map(metadata_field, known), *BUILT_IN_FIELDS]
    shown = list(map(qualified, show))
    for name, field in zip(show, shown, strict=True):
        if field not in fields:
            raise ArgumentError(f"no field '{name}' (fields: {', '.join(fields)})")
    return shown


def _reranker(spec: str | None) -> Reranker | None:
    if spec is None:
        return None
    from semsearch.encoders import load_reranker  # seldom needed

    return load_reranker(spec)


def _lines(name: str, encoding: str | None) -> Iterator[str]:
    """The queries of a file; blank lines are left out, and reported at its end."""
    from semsearch.corpus import text_lines  # seldom needed

    read = blank = 0
    first_blank: list[int] = []
    path = None if name == "-" else Path(name)
    for read, line in text_lines(path, encoding, QUERY_MAX_CHARACTERS):
        if query := line.removeprefix("\ufeff").strip():
            yield query
        else:
            blank += 1
            first_blank += [read] * (blank <= LINES_SHOWN)
    if blank == read:
        _tell(f"{name}: no query in it")
    elif blank:
        lines = ", ".join(map(str, first_blank)) + ", …" * (blank > LINES_SHOWN)
        noun = "blank line" if blank == 1 else "blank lines"
        _tell(f"{name}: {blank:,} {noun} left out (line {lines})")


def _tell(message: str) -> None:
    click.echo(visible(message), err=True)


def _typed() -> Iterator[str]:
    """What a person types, until the end of input."""
    with suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 - gives `input` its line editing and history
    while True:
        try:
            line = input("query> ")
        except EOFError:
            click.echo()
            return
        if line.strip():
            yield line
