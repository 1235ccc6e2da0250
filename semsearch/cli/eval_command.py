"""``semsearch eval``: evaluate systems on data sets."""

from __future__ import annotations

import click

from semsearch.cli.command import LazyGroup

SUBCOMMANDS = {
    "sts": ("semsearch.cli.eval_sts", "Correlation of similarity scores with human scores."),
    "ir": ("semsearch.cli.eval_ir", "Retrieval measures on a collection."),
}


@click.command("eval", cls=LazyGroup, lazy=SUBCOMMANDS)
def command() -> None:
    """Evaluate encoders, rerankers and BM25 on data sets, with 95 % intervals.

    \b
    semsearch eval sts --system minilm --system glove:glove.6B.300d.txt
    semsearch eval ir --data scifact --system bm25 --system minilm --system hybrid:minilm
    """
