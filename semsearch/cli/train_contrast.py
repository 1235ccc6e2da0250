"""``semsearch train contrast``: a corpus in, a bi-encoder out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.options import complete_file
from semsearch.cli.training_options import (
    corpora_argument,
    corpus_options,
    tests_option,
    train_on_corpus,
)
from semsearch.training import Contrast


@click.command("contrast")
@corpora_argument
@click.option(
    "--base",
    required=True,
    metavar="MODEL",
    shell_complete=complete_file,
    help="A BERT, such as `semsearch train pretrain` writes, or a sentence encoder.",
)
@tests_option
@corpus_options("models/NAME-OF-THE-CORPUS-contrast", "2", "by the width of the model", 256)
def command(corpora: tuple[str, ...], **choices: Any) -> None:
    """Train a bi-encoder on a corpus, without labels.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index. A title and the
    sentence after it, and neighbouring sentences, are positive pairs; the others of a large batch
    are the negatives. A twentieth of the documents is held out, and the checkpoint that finds most
    of their pairs is kept. The result is a starting point for `semsearch train siamese` if labels
    are few.

    The learning rate is 1e-3 for a BERT of up to 256 dimensions, 5e-4 for one of up to 512, else
    2e-5.

    \b
    semsearch train pretrain corpus.csv --size tiny --epochs 0 --output bert
    semsearch train contrast corpus.csv --base bert --output encoder
    semsearch train siamese --base encoder --data pairs.csv --output my-encoder
    """
    train_on_corpus(Contrast, corpora, "{}-contrast", **choices)
