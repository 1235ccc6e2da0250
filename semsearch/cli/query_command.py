"""``semsearch query``: search an index."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout, suppress
from itertools import islice
from pathlib import Path
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from semsearch.cli.command import Command
from semsearch.cli.options import (
    Duration,
    complete_field,
    complete_file,
    existing_index,
    format_option,
    index_option,
    is_given,
    no_encoder_option,
    space_option,
    together,
    where_option,
)
from semsearch.cli.preload import preload_for_queries
from semsearch.cli.render import HitsOutput, hits_output, note
from semsearch.errors import ArgumentError, FilterError, NoVectorError, SemsearchError, with_code
from semsearch.records import BUILT_IN_FIELDS, Hits, SearchMode, metadata_field, qualified
from semsearch.search.options import DENSE_WEIGHT, RERANK_DEPTH, Fusion

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.protocols import Reranker

QUERIES_AT_ONCE = 256
QUERY_MAX_CHARACTERS = 1 << 20
#: Blank lines of a file of queries listed in a message.
LINES_SHOWN = 10

#: The number of a line in a file, and the query in it.
_Line: TypeAlias = tuple[int, str]


ranking_options = together(
    click.option(
        "--mode",
        type=click.Choice([mode.value for mode in SearchMode]),
        default="semantic",
        show_default=True,
        help='By vectors, by words, or both. In the latter two, "a phrase" raises passages that '
        "contain it, and -word excludes.",
    ),
    click.option(
        "--require",
        metavar="PHRASE",
        multiple=True,
        help="Only documents with a passage that contains this phrase; may be repeated.",
    ),
    click.option("--min-score", type=float, metavar="S", help="Drop hits with a lower score."),
    click.option(
        "--per-document",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Maximum number of passages per document.",
    ),
    click.option(
        "--collapse-duplicates", is_flag=True, help="Drop near-duplicates of better hits."
    ),
    click.option(
        "--rerank",
        "reranker",
        metavar="MODEL",
        shell_complete=complete_file,
        help="A cross-encoder, by name or folder, that reorders the first documents.",
    ),
    click.option(
        "--rerank-budget",
        type=Duration(),
        help="Time limit per query; the best-ranked documents are read first.",
    ),
    click.option(
        "--like", metavar="ID", multiple=True, help="A document that hits should resemble."
    ),
)

advanced_options = together(
    click.option(
        "--fusion",
        type=click.Choice([fusion.value for fusion in Fusion]),
        default=Fusion.ZSCORES.value,
        show_default=True,
        help="Fusion of both rankings in hybrid mode: standard scores, or reciprocal ranks.",
    ),
    click.option(
        "--dense-weight",
        type=float,
        default=DENSE_WEIGHT,
        show_default=True,
        metavar="W",
        help="Weight of the semantic ranking in hybrid mode, from 0 to 1.",
    ),
    click.option(
        "--mmr",
        type=float,
        metavar="W",
        help="Diversify hits (maximal marginal relevance); 1 is relevance only, 0 diversity only.",
    ),
    click.option(
        "--unlike", metavar="ID", multiple=True, help="A document that hits should not resemble."
    ),
    click.option(
        "--rerank-depth",
        type=int,
        default=RERANK_DEPTH,
        show_default=True,
        metavar="N",
        help="Maximum number of documents that the cross-encoder reads.",
    ),
)


@click.command("query", cls=Command, sections={"--fusion": "Advanced"})
@click.argument("texts", metavar="TEXT...", nargs=-1)
@index_option
@click.option("-k", default=10, show_default=True, metavar="N", help="Number of hits.")
@where_option
@space_option
@no_encoder_option
@ranking_options
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
    shell_complete=complete_field,
    help="A metadata field to show in the table; may be repeated.",
)
@click.option(
    "--queries",
    metavar="FILE",
    shell_complete=complete_file,
    help="A file with one query per line; - for standard input.",
)
@click.option("--encoding", metavar="NAME", help="The encoding of that file.  [default: UTF-8]")
@advanced_options
def command(**parameters: Any) -> None:
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
    arguments = QueryArguments.of(parameters)
    directory = existing_index(arguments.directory)
    encoders = preload_for_queries(directory, arguments.space) if arguments.needs_encoder else []
    from semsearch.index import Index  # while the model loads

    with ExitStack() as stack:
        index = stack.enter_context(Index.open(directory, encoders))
        space = index.space(arguments.space, complete=True).name
        output = stack.enter_context(arguments.output(index))
        options = arguments.options | {"space": space, "rerank": _reranker(arguments.reranker)}
        if arguments.is_single:
            found = index.search(arguments.texts, **options)
            output.add(found, heading=False)
            if options["rerank_budget"] is not None:
                from semsearch.texts import quantity

                note(f"the cross-encoder read {quantity(found.reranked or 0, 'document')}")
        elif arguments.queries is not None:
            for hits in _answered(index, arguments, options):
                output.add(hits, heading=True)
        elif sys.stdin.isatty():
            for line in _typed():
                try:
                    output.add(index.search(line, **options), heading=False)
                except SemsearchError as error:
                    note(f"Error: {with_code(error)}")
        else:
            raise ArgumentError("give a TEXT to search for, or --queries FILE")


class QueryArguments(NamedTuple):
    """The command line, parsed; `options` are those of `Index.search`."""

    texts: tuple[str, ...]
    directory: Path | None
    space: str | None
    reranker: str | None
    format_name: str
    show: tuple[str, ...]
    queries: str | None
    encoding: str | None
    options: dict[str, Any]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> QueryArguments:
        """Check the parameters of click's current context.

        Raises:
            ArgumentError: some of them are incompatible.
        """
        options = {name: parameters[name] for name in parameters.keys() - set(cls._fields)}
        named = {name: parameters[name] for name in parameters.keys() - options.keys()}
        arguments = cls(**named, options=options)
        if arguments.texts and arguments.queries is not None:
            raise ArgumentError("give a TEXT or --queries, not both")
        if arguments.encoding is not None and arguments.queries is None:
            raise ArgumentError("--encoding needs --queries FILE")
        is_hybrid = options["mode"] == SearchMode.HYBRID.value
        reranks = arguments.reranker is not None
        for name, has_effect, other in (
            ("fusion", is_hybrid, "--mode hybrid"),
            ("dense_weight", is_hybrid, "--mode hybrid"),
            ("rerank_depth", reranks, "--rerank MODEL"),
            ("rerank_budget", reranks, "--rerank MODEL"),
        ):
            if is_given(name) and not has_effect:
                raise ArgumentError(f"--{name.replace('_', '-')} needs {other}")
        if options["explain"] and arguments.format_name in ("csv", "parquet"):
            raise ArgumentError("--explain needs --format table or jsonl")
        if arguments.show and arguments.format_name != "table":
            raise ArgumentError("--show needs --format table; the others have all fields")
        return arguments

    @property
    def has_examples(self) -> bool:
        """Whether there are example documents."""
        return bool(self.options["like"] or self.options["unlike"])

    @property
    def is_single(self) -> bool:
        """Whether the command line itself has the query."""
        return self.queries is None and bool(self.texts or self.has_examples)

    @property
    def needs_encoder(self) -> bool:
        """Whether there are texts to encode."""
        examples_alone = self.has_examples and not (self.texts or self.queries)
        return self.options["mode"] != SearchMode.BM25.value and not examples_alone

    def output(self, index: Index) -> HitsOutput:
        """The output for hits of an index.

        Raises:
            ArgumentError: a field to show does not exist.
        """
        known = index.fields()
        return hits_output(self.format_name, _shown(self.show, known), known)


def _shown(show: Sequence[str], known: Sequence[str]) -> list[str]:
    """The fields to show, named as in filters; `known` are the names of the metadata fields."""
    fields = [*map(metadata_field, known), *BUILT_IN_FIELDS]
    shown = list(map(qualified, show))
    for name, field in zip(show, shown, strict=True):
        if field not in fields:
            raise FilterError(f"no field '{name}' (fields: {', '.join(fields)})")
    return shown


def _reranker(spec: str | None) -> Reranker | None:
    if spec is None:
        return None
    from semsearch.encoders import load_reranker

    return load_reranker(spec)


def _answered(index: Index, arguments: QueryArguments, options: dict[str, Any]) -> Iterator[Hits]:
    """The hits of each query of a file.

    Raises:
        ArgumentError: a query cannot be used; those before it are answered.
        NoVectorError: its vector cannot be used.
    """
    name = arguments.queries or ""
    lines = _lines(name, arguments.encoding)
    blocks = iter(lambda: list(islice(lines, QUERIES_AT_ONCE)), [])
    for block in _arriving(lines) if name == "-" else blocks:
        queries = [text for _, text in block]
        with suppress(ArgumentError, NoVectorError):
            yield from index.search_many(queries, **options)
            continue
        for (number, _), query in zip(block, queries, strict=True):
            try:
                yield index.search(query, **options)
            except (ArgumentError, NoVectorError) as error:
                error.args = (f"{'stdin' if name == '-' else name}:{number}: {error}",)
                raise


def _arriving(lines: Iterator[_Line]) -> Iterator[list[_Line]]:
    """Blocks of the lines that have come, so that none waits for the next one."""
    read: Queue[_Line | Exception | None] = Queue(QUERIES_AT_ONCE)

    def read_all() -> None:
        end = None
        try:
            for line in lines:
                read.put(line)
        except Exception as error:
            end = error
        read.put(end)

    Thread(target=read_all, daemon=True).start()
    block: list[_Line] = []
    while isinstance(line := read.get(), tuple):
        block.append(line)
        if read.empty() or len(block) == QUERIES_AT_ONCE:
            yield block
            block = []
    if block:
        yield block
    if line is not None:
        raise line


def _lines(name: str, encoding: str | None) -> Iterator[_Line]:
    """The queries of a file by line number; blank lines are skipped, and reported at the end."""
    from semsearch.corpus import text_lines
    from semsearch.texts import quantity

    read = blank = 0
    first_blank: list[int] = []
    path = None if name == "-" else Path(name)
    for read, line in text_lines(path, encoding, QUERY_MAX_CHARACTERS):
        if query := line.removeprefix("\ufeff").strip():
            yield read, query
        else:
            blank += 1
            first_blank += [read] * (blank <= LINES_SHOWN)
    if blank == read:
        note(f"{name} contains no query")
    elif blank:
        lines = ", ".join(map(str, first_blank)) + ", …" * (blank > LINES_SHOWN)
        noun = "line" if blank == 1 else "lines"
        note(f"{name}: {quantity(blank, 'blank line')} skipped ({noun} {lines})")


def _typed() -> Iterator[str]:
    """Queries entered on a terminal, until the end of input."""
    with suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 - gives `input` its line editing and history
    prompts = sys.stdout if sys.stdout.isatty() else sys.stderr
    while True:
        try:
            with redirect_stdout(prompts):
                line = input("query> ")
        except EOFError:
            click.echo(file=prompts)
            return
        if line.strip():
            yield line
