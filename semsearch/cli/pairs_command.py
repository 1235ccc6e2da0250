"""``semsearch pairs``: find the most similar pairs in a collection."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy

from semsearch.cli.corpus_options import (
    BadRows,
    corpora_argument,
    id_column_option,
    text_column_option,
)
from semsearch.cli.options import (
    NAME_OR_FILE,
    existing_index,
    format_option,
    is_given,
    optional_index_option,
    space_option,
)
from semsearch.cli.preload import preload_for_documents
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import Entry, console, note, print_entries, shortened, write_csv
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, quantity
from semsearch.explore.pairs import Pair, check_limits, similar_pairs
from semsearch.explore.vectors import Rows
from semsearch.protocols import Encoder, Matrix

DEFAULT_K = 20
ENCODED_AT_ONCE = 4096


@click.command("pairs")
@corpora_argument("[FILE]...", required=False)
@optional_index_option
@click.option(
    "-k",
    type=int,
    metavar="N",
    help=f"Pairs, or groups in a table.  [default: {DEFAULT_K}; all for csv with --min-score]",
)
@click.option("--min-score", type=float, metavar="S", help="The minimum score of pairs.")
@format_option("table", "csv", description="A table of groups, or one row per pair.")
@click.option(
    "--encoder",
    "spec",
    metavar="SPEC",
    type=NAME_OR_FILE,
    help=f"For a FILE: an encoder as for `semsearch index`.  [default: {DEFAULT_ENCODER}]",
)
@space_option
@id_column_option
@text_column_option
def pairs_command(
    corpora: tuple[str, ...],
    directory: Path | None,
    k: int | None,
    min_score: float | None,
    format_name: str,
    spec: str | None,
    space: str | None,
    **columns: Any,
) -> None:
    """Find the most similar pairs in a collection.

    FILE is a corpus as for `semsearch index`, or an index, as with --index. All of its texts are
    compared with each other, long ones truncated by the encoder; the score is the cosine. The table
    lists the texts of the best pairs as groups, and the same text once with its number; csv lists
    each pair once, the best first. Without a FILE, the passages of an index are compared by their
    stored vectors, except those of the same document.

    With --min-score and without -k, csv lists all pairs as they are found, not sorted by score, and
    without storing them in memory.

    \b
    semsearch pairs questions.csv
    semsearch pairs tickets.jsonl --text-column title -k 100 --format csv > pairs.csv
    semsearch pairs notes/ --min-score 0.9 --format csv > duplicates.csv
    semsearch pairs
    semsearch pairs --index films
    """
    if k is None and (min_score is None or format_name == "table"):
        k = DEFAULT_K
    check_limits(k, min_score)
    if corpora and is_given("directory"):
        raise ArgumentError("name a FILE, or an index with --index DIR, not both")
    if len(corpora) == 1 and Path(corpora[0], "index.sqlite").is_file():
        directory, corpora = Path(corpora[0]), ()
    if corpora:
        if space is not None:
            raise ArgumentError("--space needs --index; for a FILE, use --encoder SPEC")
        items = _encoded_corpus(corpora, spec or DEFAULT_ENCODER, columns)
    else:
        if spec is not None or any(columns.values()):
            raise ArgumentError("--encoder and columns apply to a FILE; an index has a --space")
        from semsearch.index import Index  # not needed for a file

        with Index.open(existing_index(directory)) as index:
            found = index.passages(space)
        items = _Items(found.document_ids, found.texts, found.vectors, found.documents)
    if len(items.texts) < 2:
        note("at least two texts are needed")
    is_table = format_name == "table"
    repeats = _repeats(items) if is_table else None
    if repeats is not None:
        items = items.take([rows[0] for rows in repeats])
    is_stream = k is None  # without a bar, which would mix with the pairs
    with IndexingProgress("pairs compared", "comparing", quiet=is_stream) as progress:
        pairs: Iterable[Pair] = similar_pairs(
            items.vectors,
            k,
            min_score,
            groups=items.owners,
            on_progress=progress.of,
        )
        if not is_stream:
            pairs = list(pairs)
    if repeats is None:
        ids, texts = items.ids, items.texts
        write_csv(
            ["score", "left_id", "right_id", "left_text", "right_text"],
            ((score, ids[a], ids[b], texts[a], texts[b]) for a, b, score in pairs),
        )
    else:
        _print_groups(items, repeats, _groups(list(pairs), [len(rows) for rows in repeats])[:k])


class _Items(NamedTuple):
    """The texts to compare, with their ids and vectors."""

    ids: list[str]
    texts: list[str]
    vectors: Matrix
    owners: Rows | None = None  # texts with the same owner are not compared

    def take(self, rows: Sequence[int]) -> _Items:
        """Some of the texts."""
        ids, texts = ([column[row] for row in rows] for column in (self.ids, self.texts))
        owners = None if self.owners is None else self.owners[rows]
        return _Items(ids, texts, self.vectors[rows], owners)


def _encoded_corpus(corpora: Sequence[str], spec: str, columns: dict[str, Any]) -> _Items:
    encoder = preload_for_documents(spec, "auto")
    with IndexingProgress("texts") as progress:
        bad_rows = BadRows(progress.note)
        corpus = Corpus(corpora, notify=progress.note, on_bad_row=bad_rows, **columns)
        documents = list(corpus)
        texts = [one.text for one in documents]
        vectors = _encoded(texts, encoder, progress)
        progress.note(f"{quantity(len(texts), 'text')} encoded")
    return _Items([one.id or one.source for one in documents], texts, vectors)


def _encoded(texts: list[str], encoder: Encoder, progress: IndexingProgress) -> Matrix:
    """The vectors of texts; identical texts have identical vectors, whatever their batches."""
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    distinct = list(places)
    vectors = numpy.empty((len(distinct), encoder.dimension), numpy.float32)
    for start in range(0, len(distinct), ENCODED_AT_ONCE):
        window = distinct[start : start + ENCODED_AT_ONCE]
        vectors[start : start + len(window)] = encoder.encode_documents(window)
        progress.of(start + len(window), len(distinct))
    return vectors[[places[text] for text in texts]]


class _Group(NamedTuple):
    """Texts that pairs link, the first ones first, and the lowest score of these pairs."""

    score: float
    members: tuple[int, ...]


def _repeats(items: _Items) -> list[list[int]]:
    """The rows of each distinct text, one for each document."""
    rows: dict[str, dict[object, int]] = {}
    for row, text in enumerate(items.texts):
        owner = row if items.owners is None else int(items.owners[row])
        rows.setdefault(text, {}).setdefault(owner, row)
    return [list(found.values()) for found in rows.values()]


def _groups(pairs: Sequence[Pair], sizes: Sequence[int]) -> list[_Group]:
    """The groups that pairs link, and the texts that occur more than once, the best first."""
    groups = {row: _Group(1.0, (row,)) for row, size in enumerate(sizes) if size > 1}
    for left, right, score in pairs:
        joined = [groups.get(row, _Group(1.0, (row,))) for row in (left, right)]
        members = tuple(sorted({row for group in joined for row in group.members}))
        group = _Group(min(score, *(one.score for one in joined)), members)
        groups |= dict.fromkeys(members, group)
    return sorted(
        set(groups.values()),
        key=lambda group: (-group.score, -sum(sizes[row] for row in group.members), group.members),
    )


def _print_groups(
    items: _Items, repeats: Sequence[Sequence[int]], groups: Sequence[_Group]
) -> None:
    from rich.text import Text

    entries = []
    for rank, (score, members) in enumerate(groups, start=1):
        head = Text()
        for row in members:
            times = f"{len(repeats[row]):,} × " if len(repeats[row]) > 1 else ""
            head.append(f"{times}{shortened(items.ids[row])}: ", style="dim")
            head.append(f"{shortened(items.texts[row])}\n")
        head.rstrip()
        entries.append(Entry([str(rank), f"{score:.3f}"], head, Text()))
    if entries:
        print_entries(console(), [">", ">score", "id and text of each"], entries)
    else:
        note("no pairs")
