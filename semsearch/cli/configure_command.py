"""``semsearch configure``: change the spaces and the search of an index."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from semsearch.cli.command import Command
from semsearch.cli.encoding_options import exit_if_interrupted
from semsearch.cli.language_fit import sampled_texts, warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import (
    INDEX_VARIABLE,
    complete_file,
    directory_option,
    existing_index,
    index_to_change,
    precision_option,
    refuse_others,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.encoders.specs import with_dimension
from semsearch.errors import ArgumentError, quantity
from semsearch.indexing.summary import Summary
from semsearch.records import STORED_TYPES

if TYPE_CHECKING:
    from semsearch.index import Index


@click.command("configure", cls=Command, sections={"--index-type": "Search"})
@directory_option(
    f"The index to change.  [default: {INDEX_VARIABLE} or the only index under indexes/]"
)
@click.option(
    "--add-space",
    metavar="SPEC",
    shell_complete=complete_file,
    help="Encode the stored texts with another encoder.",
)
@click.option(
    "--dimension",
    type=click.IntRange(1),
    metavar="N",
    help="Keep the leading N dimensions of its vectors, like the suffix @Nd of SPEC; models "
    "trained for it lose less.",
)
@click.option(
    "--stored-type",
    type=click.Choice(STORED_TYPES),
    help="The data type of its stored vectors.  [default: float32]",
)
@precision_option
@click.option("--drop-space", metavar="SPACE", help="Remove a space.")
@click.option(
    "--index-type",
    type=click.Choice(["auto", "flat", "ivf"]),
    help="Vector index: flat (exact), ivf (approximate), or auto: flat up to 50,000 passages, "
    "then ivf.  [default of an index: auto]",
)
@click.option(
    "--recall",
    type=float,
    metavar="R",
    help="Target recall@10 of ivf.  [default of an index: 0.98]",
)
@click.option(
    "--stemmer",
    metavar="NAME",
    help="Stemmer and stop words of BM25 (english, german, …), or none.  [default of an index: the "
    "Porter stemmer]  [needs the extra 'languages']",
)
@click.option(
    "--filter-column",
    "filter_columns",
    metavar="FIELD",
    multiple=True,
    help="Index a metadata field for fast filters; may be repeated.",
)
def command(
    directory: Path | None,
    add_space: str | None,
    drop_space: str | None,
    dimension: int | None,
    stored_type: str | None,
    precision: str | None,
    index_type: str | None,
    recall: float | None,
    stemmer: str | None,
    filter_columns: tuple[str, ...],
) -> None:
    """Change the embedding spaces of an index, its vector index, BM25's words, or its filters.

    \b
    semsearch configure --add-space ./my-model --index indexes/films
    semsearch configure --drop-space minilm
    semsearch configure --index-type ivf --recall 0.99
    semsearch configure --stemmer german --index indexes/berichte
    semsearch configure --filter-column year --filter-column genres
    """
    from semsearch.index import Index

    changes = (add_space, drop_space, index_type, recall, stemmer)
    if not filter_columns and all(change is None for change in changes):
        raise ArgumentError("nothing to change: name at least one option")
    if add_space is None:
        others = {"directory", "drop_space", "index_type", "recall", "stemmer"}
        refuse_others(others | {"filter_columns"}, "needs --add-space SPEC")
    place = index_to_change(directory and existing_index(directory))
    with Index.open(place) as index:
        if drop_space:  # report a wrong name before a long run
            index.space(drop_space)
        if add_space:
            named = add_space if dimension is None else with_dimension(add_space, dimension)
            line = _add_space(index, named, stored_type, precision)
            click.echo(visible(f"{place}: {line}"))
        with index.writer() as writer:
            if drop_space:
                writer.drop_space(drop_space)
                click.echo(visible(f"{place}: space '{drop_space}' dropped"))
            if stemmer:
                writer.set_stemmer(stemmer)
                click.echo(visible(f"{place}: BM25 uses the stemmer '{stemmer}'"))
            for name in filter_columns:
                writer.index_field(name)
                click.echo(visible(f"{place}: field '{name}' is indexed for filters"))
            if index_type or recall is not None:
                writer.set_index_type(index_type, recall=recall)
                writer.optimise()
        for name, snapshot in index.info().snapshots.items() if index_type or recall else ():
            line = f"space '{name}' has index {snapshot.kind}, recall {snapshot.recall:.3f}"
            click.echo(visible(f"{place}: {line}"))


def _add_space(index: Index, spec: str, stored_type: str | None, precision: str | None) -> str:
    """Encode the stored passages with another encoder; returns what was done."""
    from semsearch.encoders import load_encoder

    with ExitStack() as stack:
        progress = stack.enter_context(IndexingProgress("passages"))
        total = index.info().passages

        def on_batch(summary: Summary) -> None:
            progress.update(summary.encoded, summary.encoded / total)

        encoder = load_encoder(spec, precision=precision or "auto")
        stack.enter_context(exit_if_interrupted(index, progress))
        writer = stack.enter_context(index.writer(on_batch=on_batch))
        space = writer.add_space(encoder, stored_type)
        texts = sampled_texts(index, total)
    warn_of_unknown_words(space.name, encoder)
    warn_of_poor_fit(space, texts)
    return f"space '{space.name}' holds the vectors of {quantity(total, 'passage')}"
