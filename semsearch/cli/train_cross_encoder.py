"""``semsearch train cross-encoder``: scored or labelled pairs in, a reranker out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.training_options import train_on_pairs, training_options
from semsearch.training import CrossEncoding


@click.command("cross-encoder", cls=Command)
@training_options
def command(data: tuple[str, ...], **choices: Any) -> None:
    """Train a cross-encoder: what --rerank and --encoder cross-encoder:DIR take.

    It learns from pairs with gold scores (columns sentence1, sentence2, score) or with labels
    (sentence1, sentence2, label). Files, checks and resuming are as with
    `semsearch train siamese`. Scores and two classes need one output, which ranks; more classes
    one each, with which it cannot rerank.

    \b
    semsearch train cross-encoder --data stsbenchmark:train --test stsbenchmark --output my-reranker
    semsearch train cross-encoder --data nli.csv --data stsbenchmark:train --learning-rate 5e-5 \\
        --layer-decay 0.9 --output my-reranker
    """
    train_on_pairs(CrossEncoding(), data, **choices)
