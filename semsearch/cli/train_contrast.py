"""``semsearch train contrast``: a corpus in, a bi-encoder out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.training_options import (
    corpus_training_options,
    tests_option,
    train_on_corpus,
)
from semsearch.training import Contrast


@click.command("contrast", cls=Command)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@click.option(
    "--base",
    required=True,
    metavar="MODEL",
    help="A BERT, such as `semsearch train pretrain` writes, or a sentence encoder.",
)
@tests_option
@corpus_training_options("models/NAME-OF-THE-CORPUS-contrast")
def command(corpora: tuple[str, ...], **choices: Any) -> None:
    """Make a bi-encoder from a corpus, without labels.

    CORPUS is read as `semsearch index` reads it. A title and the sentence after it, and sentences
    next to each other, belong together; the model learns to find each among the others of a large
    batch. A twentieth of the documents is held out, and the checkpoint that finds most of their
    pairs is kept. It is a beginning for `semsearch train siamese` where there are few labels.

    The learning rate is 1e-3 for a BERT of up to 256 dimensions, 5e-4 for one of up to 512, else
    2e-5.

    \b
    semsearch train pretrain corpus.csv --size tiny --steps 0 --output bert
    semsearch train contrast corpus.csv --base bert --output encoder
    semsearch train siamese --base encoder --data pairs.csv --output my-encoder
    """
    train_on_corpus(
        lambda corpus, name: Contrast(corpus or (), name),
        corpora,
        "{}-contrast",
        **choices,
    )
