"""``semsearch configure``: change the spaces and the search of an index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from semsearch.cli.language_fit import sampled_texts, warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import complete_file, existing_index, index_option, precision_option
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.encoders.specs import with_dimension
from semsearch.errors import ArgumentError, quantity
from semsearch.indexing.batch import Summary
from semsearch.records import STORED_TYPES

if TYPE_CHECKING:
    from semsearch.index import Index


@click.command("configure")
@index_option
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
    if add_space is None and (dimension or stored_type or precision):
        raise ArgumentError("--dimension, --stored-type and --precision need --add-space SPEC")
    place = existing_index(directory)

    def report(line: str) -> None:
        click.echo(visible(f"{place}: {line}"))

    with Index.open(place) as index:
        if drop_space:  # report a wrong name before a long run
            index.space(drop_space)
        if add_space:
            named = add_space if dimension is None else with_dimension(add_space, dimension)
            report(_add_space(index, named, stored_type, precision))
        with index.writer() as writer:
            if drop_space:
                writer.drop_space(drop_space)
                report(f"space '{drop_space}' dropped")
            if stemmer:
                writer.set_stemmer(stemmer)
                report(f"BM25 uses the stemmer '{stemmer}'")
            for name in filter_columns:
                writer.index_field(name)
                report(f"field '{name}' is indexed for filters")
            if index_type or recall is not None:
                writer.set_index_type(index_type, recall=recall)
                writer.optimise()
        for name, snapshot in index.info().snapshots.items() if index_type or recall else ():
            report(f"space '{name}' has index {snapshot.kind}, recall {snapshot.recall:.3f}")


def _add_space(index: Index, spec: str, stored_type: str | None, precision: str | None) -> str:
    """Encode the stored passages with another encoder; returns what was done."""
    from semsearch.encoders import load_encoder

    total = index.info().passages
    with IndexingProgress("passages") as progress:

        def on_batch(summary: Summary) -> None:
            progress.update(summary.encoded, summary.encoded / total)

        encoder = load_encoder(spec, precision=precision or "auto")
        with index.writer(on_batch=on_batch) as writer:
            space = writer.add_space(encoder, stored_type)
        texts = sampled_texts(index, total)
    warn_of_unknown_words(space.name, encoder)
    warn_of_poor_fit(space, texts)
    return f"space '{space.name}' holds the vectors of {quantity(total, 'passage')}"
