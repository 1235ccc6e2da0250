"""``semsearch configure``: change the spaces and the search of an index."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.language_fit import warn_of_poor_fit, warn_of_unknown_words
from semsearch.cli.options import (
    NAME_OR_FILE,
    encoder_precision_option,
    index_option,
    repeated_option,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import say
from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, quantity
from semsearch.index import Index


@click.command("configure")
@index_option
@click.option(
    "--add-space",
    metavar="SPEC",
    type=NAME_OR_FILE,
    help="Encode the stored texts with another encoder; the suffix @Nd keeps the leading N "
    "dimensions of its vectors.",
)
@encoder_precision_option
@click.option("--drop-space", metavar="SPACE", help="Remove a space.")
@click.option(
    "--index-type",
    type=click.Choice(["auto", "flat", "ivf"]),
    help="Vector index: flat (exact), ivf (approximate), or auto: flat up to 50,000 passages, "
    "then ivf.  [default of an index: auto]",
)
@click.option("--recall", type=float, metavar="R", help="Target recall@10 of ivf.  [default: 0.98]")
@click.option(
    "--stemmer",
    metavar="NAME",
    help="Stemmer and stop words of BM25 (english, german, …), or none.  [default of an index: the "
    "Porter stemmer]  [needs the extra 'languages']",
)
@repeated_option(
    "--filter-column", "filter_columns", "FIELD", "Index a metadata field for fast filters."
)
def configure_command(
    directory: Path,
    add_space: str | None,
    drop_space: str | None,
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
    changes_vectors = index_type is not None or recall is not None
    if not (add_space or drop_space or stemmer or filter_columns or changes_vectors):
        raise ArgumentError("nothing to change: name at least one option")
    if add_space is None and precision:
        raise ArgumentError("--precision needs --add-space SPEC")
    with Index.open(directory) as index:
        if drop_space:  # report a wrong name before a long run
            index.space(drop_space)
        if add_space:
            _add_space(index, directory, add_space, precision)
        with index.writer() as writer:
            if drop_space:
                writer.drop_space(drop_space)
                say(f"{directory}: space '{drop_space}' dropped")
            if stemmer:
                writer.set_stemmer(stemmer)
                say(f"{directory}: BM25 uses the stemmer '{stemmer}'")
            for name in filter_columns:
                writer.index_field(name)
                say(f"{directory}: field '{name}' is indexed for filters")
            if changes_vectors:
                writer.set_index_type(index_type, recall=recall)
                writer.optimise()
        for name, found in index.info().snapshots.items() if changes_vectors else ():
            say(f"{directory}: space '{name}' has index {found.kind}, recall {found.recall:.3f}")


def _add_space(index: Index, place: Path, spec: str, precision: str | None) -> None:
    """Encode the stored passages with another encoder."""
    total = index.info().passages
    encoder = load_encoder(spec, precision=precision or "auto")
    with (
        IndexingProgress("passages") as progress,
        index.writer(on_batch=lambda summary: progress.of(summary.encoded, total)) as writer,
    ):
        space = writer.add_space(encoder)
    say(f"{place}: space '{space.name}' holds the vectors of {quantity(total, 'passage')}")
    warn_of_unknown_words(space.name, encoder)
    warn_of_poor_fit(index, space)
