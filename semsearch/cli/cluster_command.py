"""``semsearch cluster``: group the passages of an index."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import (
    existing_index,
    format_option,
    index_option,
    space_option,
    where_option,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import (
    Entry,
    console,
    csv_line,
    json_text,
    print_entries,
    shortened,
    visible,
    write_line,
)
from semsearch.errors import quantity
from semsearch.explore.clusters import (
    DEFAULT_MIN_SIZE,
    Clustering,
    check_arguments,
    cluster,
)
from semsearch.index import Index
from semsearch.storage.interface import Passages


@click.command("cluster")
@index_option
@space_option
@click.option(
    "-n", type=int, metavar="N", help="The number of groups.  [default: √(passages/2), at most 50]"
)
@click.option(
    "--min-score",
    type=float,
    metavar="S",
    help="Instead, group passages that have at least this score with a central one.",
)
@click.option(
    "--min-size",
    type=int,
    metavar="M",
    help=f"With --min-score, the minimum size of groups.  [default: {DEFAULT_MIN_SIZE}]",
)
@where_option
@format_option(
    "table", "jsonl", "csv", description="A table, one line per group, or one row per passage."
)
def command(
    directory: Path | None,
    space: str | None,
    n: int | None,
    min_score: float | None,
    min_size: int | None,
    where: str | None,
    format_name: str,
) -> None:
    """Group the passages of an index by topic.

    With -n, or without --min-score, by k-means: every passage is in one of N groups. With
    --min-score, groups are passages within that score of a central one; the other passages are
    ungrouped, with an empty group in csv and null in jsonl. This compares all pairs of passages, so
    the time grows with the square of their number.

    The largest group is first, with its distinctive keywords, the text nearest to its centroid, and
    its cohesion: the mean cosine of its passages with the centroid.

    \b
    semsearch cluster
    semsearch cluster -n 20 --where "year >= 1990"
    semsearch cluster --min-score 0.7 --format csv > groups.csv
    """
    check_arguments(n, min_score, min_size)
    with Index.open(existing_index(directory)) as index:
        passages = index.passages(space, where)
        stop_words = index.info().stop_words
    started = time.perf_counter()
    with IndexingProgress(beginning="grouping") as progress:
        clustering = cluster(
            passages.vectors,
            passages.texts,
            n,
            min_score=min_score,
            min_size=min_size,
            stop_words=stop_words,
            notify=progress.note,
        )
        progress.note(_summary(clustering, len(passages.texts), time.perf_counter() - started))
    if format_name == "table":
        _print_table(passages, clustering)
        return
    for line in (_json_lines if format_name == "jsonl" else _csv_lines)(passages, clustering):
        write_line(line)


def _summary(clustering: Clustering, passages: int, seconds: float) -> str:
    summary = f"{quantity(passages, 'passage')}, {quantity(len(clustering.clusters), 'group')}"
    if clustering.ungrouped:
        summary += f", {quantity(len(clustering.ungrouped), 'passage')} ungrouped"
    return f"{summary}, in {seconds:.2f} s"


def _print_table(passages: Passages, clustering: Clustering) -> None:
    from rich.text import Text

    if not clustering.clusters:
        click.echo("no groups")
        return
    entries = []
    for group in clustering.clusters:
        cells = [f"{group.label}", f"{len(group.members):,}", f"{group.cohesion:.3f}"]
        words = Text(visible(", ".join(group.words)), style="bold")
        entries.append(Entry(cells, words, Text(shortened(visible(passages.texts[group.central])))))
    print_entries(console(), [">", ">size", ">cohesion", "words"], entries)


def _json_lines(passages: Passages, clustering: Clustering) -> Iterator[str]:
    """``{"group", "size", "cohesion", "words", "examples": [{"id", "score", "text"}], "members"}``.

    Ungrouped passages are last: ``{"group": null, "size", "members"}``.
    """
    names = passages.document_ids
    for group in clustering.clusters:
        row, score = group.members[0], group.scores[0]
        record: dict[str, Any] = {
            "group": group.label,
            "size": len(group.members),
            "cohesion": round(group.cohesion, 6),
            "words": group.words,
            "examples": [{"id": names[row], "score": score, "text": passages.texts[row]}],
            "members": [names[row] for row in group.members],
        }
        yield json_text(record)
    if clustering.ungrouped:
        members = [names[row] for row in clustering.ungrouped]
        record = {"group": None, "size": len(members), "members": members}
        yield json_text(record)


def _csv_lines(passages: Passages, clustering: Clustering) -> Iterator[str]:
    """Group by group, the nearest to the centroid first; then ungrouped passages."""
    yield "group,group_words,score,document_id,text"

    def line(row: int, *start: object) -> str:
        return csv_line([*start, passages.document_ids[row], passages.texts[row]])

    for group in clustering.clusters:
        words = " ".join(group.words)
        for row, score in zip(group.members, group.scores, strict=True):
            yield line(row, group.label, words, f"{score:.6f}")
    for row in clustering.ungrouped:
        yield line(row, "", "", "")
