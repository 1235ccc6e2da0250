"""``semsearch cluster`` and ``semsearch map``: the passages of an index by topic."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from semsearch.cli.options import (
    format_option,
    index_option,
    space_option,
    where_option,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import (
    Entry,
    console,
    note,
    print_entries,
    say,
    shortened,
    visible,
    write_csv,
)
from semsearch.errors import MissingExtraError, quantity, quoted
from semsearch.explore.clusters import DEFAULT_MIN_SIZE, check_arguments, cluster
from semsearch.index import Index


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
@format_option("table", "csv", description="A table of groups, or one row per passage.")
def cluster_command(
    directory: Path,
    space: str | None,
    where: str | None,
    format_name: str,
    **limits: Any,
) -> None:
    """Group the passages of an index by topic.

    With -n, or without --min-score, by k-means: every passage is in one of N groups. With
    --min-score, groups are passages within that score of a central one; the other passages are
    ungrouped, last in csv and without a group. This compares all pairs of passages, so the time
    grows with the square of their number.

    The largest group is first, with its distinctive keywords, the text nearest to its centroid, and
    its cohesion: the mean cosine of its passages with the centroid.

    \b
    semsearch cluster
    semsearch cluster -n 20 --where "year >= 1990"
    semsearch cluster --min-score 0.7 --format csv > groups.csv
    """
    check_arguments(**limits)
    with Index.open(directory) as index:
        passages = index.passages(space, where)
        stop_words = index.info().stop_words
    with IndexingProgress(beginning="grouping") as progress:
        clustering = cluster(
            passages.vectors,
            passages.texts,
            stop_words=stop_words,
            notify=progress.note,
            **limits,
        )
    counts = [quantity(len(passages.texts), "passage"), quantity(len(clustering.clusters), "group")]
    if clustering.ungrouped:
        counts.append(f"{quantity(len(clustering.ungrouped), 'passage')} ungrouped")
    note(", ".join(counts))
    if format_name == "csv":
        ids, texts = passages.document_ids, passages.texts
        rows = [
            (group.label, " ".join(group.words), score, ids[row], texts[row])
            for group in clustering.clusters
            for row, score in zip(group.members, group.scores, strict=True)
        ]
        rest = [(None, None, None, ids[row], texts[row]) for row in clustering.ungrouped]
        write_csv(["group", "group_words", "score", "document_id", "text"], [*rows, *rest])
        return
    entries = []
    for group in clustering.clusters:
        cells = [f"{group.label}", f"{len(group.members):,}", f"{group.cohesion:.3f}"]
        words = Text(visible(", ".join(group.words)), style="bold")
        entries.append(Entry(cells, words, Text(shortened(passages.texts[group.central]))))
    if entries:
        print_entries(console(), [">", ">size", ">cohesion", "words"], entries)


@click.command("map")
@index_option
@space_option
def map_command(directory: Path, space: str | None) -> None:
    """Project the passages of an index to a map in two dimensions.

    Positions (by t-SNE) and groups (by k-means) are stored beside the index; the page of
    `semsearch serve` shows the newest map. Needs the extra 'map'.

    \b
    semsearch map --index indexes/films
    semsearch serve --index indexes/films
    """
    if find_spec("openTSNE") is None:
        raise MissingExtraError("openTSNE", "map", "a map")
    from semsearch.explore.map import make_map

    with (
        Index.open(directory) as index,
        IndexingProgress(beginning="reading the passages") as progress,
    ):
        found = make_map(index, space, on_progress=progress.step)
        found.save(index.path)
    say(f"{quantity(len(found.passage_ids), 'passage')} in {quantity(len(found.names), 'group')}")
    say(f"view it with: semsearch serve --index {quoted(str(directory))}")
