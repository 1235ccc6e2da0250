"""``semsearch pairs``: find the most similar pairs in a collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy

from semsearch.cli.corpus_options import BadRows
from semsearch.cli.options import (
    INDEX_VARIABLE,
    complete_file,
    directory_option,
    format_option,
    index_to_change,
    space_option,
)
from semsearch.cli.preload import preload_for_documents
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import console, csv_line, json_text, shortened, visible, write_line
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity
from semsearch.explore.pairs import check_limits, similar_pairs
from semsearch.explore.vectors import Rows
from semsearch.protocols import Encoder, Matrix
from semsearch.records import Pair

DEFAULT_K = 20
ENCODED_AT_ONCE = 4096


@click.command("pairs")
@click.argument("corpora", metavar="[FILE]...", shell_complete=complete_file, nargs=-1)
@directory_option(
    "Without a FILE: the index whose passages are compared, by their stored vectors.  [default: "
    f"{INDEX_VARIABLE} or the only index under indexes/]"
)
@click.option(
    "-k",
    type=int,
    metavar="N",
    help=f"The number of pairs.  [default: {DEFAULT_K}; for jsonl and csv with --min-score, all]",
)
@click.option("--min-score", type=float, metavar="S", help="The minimum score of pairs.")
@format_option("table", "jsonl", "csv", description="A table, or one line or row per pair.")
@click.option(
    "--encoder",
    "spec",
    metavar="SPEC",
    shell_complete=complete_file,
    help="For a FILE: minilm, a Sentence-Transformers model by name or folder, glove:PATH, or "
    f"hashing.  [default: {DEFAULT_ENCODER}]",
)
@space_option
@click.option("--id-column", metavar="C", help="For a FILE: the column with the ids.")
@click.option(
    "--text-column",
    "text_columns",
    metavar="C",
    multiple=True,
    help="For a FILE: the column to compare, by name or position; several are joined.",
)
def command(
    corpora: tuple[str, ...],
    directory: Path | None,
    k: int | None,
    min_score: float | None,
    format_name: str,
    spec: str | None,
    space: str | None,
    id_column: str | None,
    text_columns: tuple[str, ...],
) -> None:
    """Find the most similar pairs in a collection.

    FILE is a corpus as for `semsearch index`, or an index, as with --index. All of its texts are
    compared with each other, long ones truncated by the encoder; the score is the cosine, rounded
    to six decimals. Each pair is listed once, in the order of the collection, the best pair first.
    Identical texts are pairs with score 1. A text without an id is identified by its location.

    With --min-score and without -k, jsonl and csv list all pairs as they are found, not sorted by
    score, and without storing them in memory.

    Without a FILE, the passages of an index are compared, except those of the same document.

    \b
    semsearch pairs questions.csv
    semsearch pairs tickets.jsonl --text-column title -k 100 --format csv > pairs.csv
    semsearch pairs notes/ --min-score 0.9 --format jsonl > duplicates.jsonl
    semsearch pairs
    semsearch pairs --index films
    """
    if k is None and (min_score is None or format_name == "table"):
        k = DEFAULT_K
    check_limits(k, min_score)
    if directory is None and len(corpora) == 1 and Path(corpora[0], "index.sqlite").is_file():
        directory, corpora = Path(corpora[0]), ()
    if directory is not None and corpora:
        raise ArgumentError("name a FILE, or an index with --index DIR, not both")
    if corpora:
        if space is not None:
            raise ArgumentError("--space needs --index; for a FILE, use --encoder SPEC")
        items = _encoded_corpus(corpora, spec or DEFAULT_ENCODER, id_column, text_columns)
    else:
        if id_column or text_columns:
            raise ArgumentError("--id-column and --text-column apply to a FILE, not to an index")
        if spec is not None:
            raise ArgumentError(f"for an index, name one of its spaces: --space {spec}")
        items = _indexed(index_to_change(directory), space)
    if len(items.texts) < 2:
        click.echo("at least two texts are needed", err=True)
    _print(format_name, items, _pairs(items, k, min_score))


class _Items(NamedTuple):
    """The texts to compare, with their ids and vectors."""

    ids: list[str]
    texts: list[str]
    vectors: Matrix
    owners: Rows | None = None  # texts with the same owner are not compared


def _encoded_corpus(
    corpora: tuple[str, ...], spec: str, id_column: str | None, text_columns: tuple[str, ...]
) -> _Items:
    encoder = preload_for_documents(spec, "auto")
    with IndexingProgress("texts") as progress:
        corpus = Corpus(
            list(corpora),
            id_column=id_column,
            text_columns=text_columns,
            notify=lambda message: progress.note(visible(message)),
            on_bad_row=BadRows(progress, skip=True),
        )
        documents = list(corpus)
        ids = [one.source if one.id is None else one.id for one in documents]
        texts = [one.text for one in documents]
        started = time.perf_counter()
        vectors = _encoded(texts, encoder, progress.update)
        progress.note(f"{quantity(len(texts), 'text')} encoded {_in_seconds(started)}")
        return _Items(ids, texts, vectors)


def _encoded(texts: list[str], encoder: Encoder, on_window: Callable[[int, float], None]) -> Matrix:
    """The vectors of texts; identical texts have identical vectors, whatever their batches."""
    first: dict[str, int] = {}
    sources = numpy.array([first.setdefault(text, row) for row, text in enumerate(texts)], int)
    repeated = sources != numpy.arange(len(texts))
    distinct = numpy.flatnonzero(~repeated)
    vectors = numpy.empty((len(texts), encoder.dimension), numpy.float32)
    for start in range(0, len(distinct), ENCODED_AT_ONCE):
        window = distinct[start : start + ENCODED_AT_ONCE]
        vectors[window] = encoder.encode_documents([texts[row] for row in window])
        done = start + len(window)
        on_window(done, done / len(distinct))
    vectors[repeated] = vectors[sources[repeated]]
    return vectors


def _indexed(directory: Path, space_name: str | None) -> _Items:
    """The passages of an index with their stored vectors; no encoder is loaded."""
    from semsearch.index import Index  # not needed for a file

    with Index.open(directory) as index:
        found = index.passages(space_name)
    return _Items(found.document_ids, found.texts, found.vectors, found.documents)


def _pairs(items: _Items, k: int | None, min_score: float | None) -> Iterable[Pair]:
    if k is None:  # no progress bar, which would mix with the pairs
        return similar_pairs(items.vectors, None, min_score, groups=items.owners)
    started = time.perf_counter()
    compared = 0
    with IndexingProgress("pairs compared") as progress:

        def on_progress(done: int, total: int) -> None:
            nonlocal compared
            compared = done
            progress.update(done, done / max(1, total))

        progress.update(0, None)
        pairs = list(
            similar_pairs(items.vectors, k, min_score, groups=items.owners, on_progress=on_progress)
        )
        progress.note(f"{quantity(compared, 'pair')} compared {_in_seconds(started)}")
        return pairs


def _in_seconds(started: float) -> str:
    return f"in {time.perf_counter() - started:.2f} s"


def _print(format_name: str, items: _Items, pairs: Iterable[Pair]) -> None:
    if format_name == "table":
        _print_table(items, list(pairs))
        return
    for line in (_json_lines if format_name == "jsonl" else _csv_lines)(items, pairs):
        write_line(line)


def _print_table(items: _Items, pairs: list[Pair]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not pairs:
        click.echo("no pairs")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("", justify="right", style="dim")
    table.add_column("score", justify="right")
    table.add_column("left", ratio=1, overflow="fold")
    table.add_column("right", ratio=1, overflow="fold")
    for rank, (left, right, score) in enumerate(pairs, start=1):
        sides = [
            Text.assemble(
                (shortened(visible(items.ids[row])), "dim"),
                "\n",
                shortened(visible(items.texts[row])),
            )
            for row in (left, right)
        ]
        table.add_row(Text(str(rank)), Text(f"{score:.3f}"), *sides)
    console().print(table)


def _json_lines(items: _Items, pairs: Iterable[Pair]) -> Iterator[str]:
    """``{"score": …, "left": {"id", "text"}, "right": {"id", "text"}}``."""
    for pair in pairs:
        record: dict[str, Any] = {"score": pair.score}
        for side, row in (("left", pair.left), ("right", pair.right)):
            record[side] = {"id": items.ids[row], "text": items.texts[row]}
        yield json_text(record)


def _csv_lines(items: _Items, pairs: Iterable[Pair]) -> Iterator[str]:
    yield "score,left_id,right_id,left_text,right_text"
    for left, right, score in pairs:
        names = items.ids[left], items.ids[right]
        yield csv_line([f"{score:.6f}", *names, items.texts[left], items.texts[right]])
