"""``semsearch train``: create or improve models; one file per subcommand."""

from __future__ import annotations

import click

from semsearch.cli.command import LazyGroup

SUBCOMMANDS = {
    "siamese": ("semsearch.cli.train_siamese", "Train a bi-encoder on pairs or triplets."),
    "cross-encoder": ("semsearch.cli.train_cross_encoder", "Train a reranker on pairs or queries."),
    "adapt": ("semsearch.cli.train_adapt", "Fit an encoder to a corpus, without labels."),
    "pretrain": ("semsearch.cli.train_pretrain", "Pre-train a BERT on a corpus."),
    "contrast": ("semsearch.cli.train_contrast", "Train a bi-encoder on a corpus, without labels."),
    "translate": ("semsearch.cli.train_translate", "Teach an encoder other languages."),
    "distill": ("semsearch.cli.train_distill", "Distil an encoder into a faster student."),
}


@click.command("train", cls=LazyGroup, lazy=SUBCOMMANDS)
def command() -> None:
    """Train a model; needs the extra 'train'.

    \b
    semsearch train siamese --data pairs.csv --loss cosine --output my-encoder
    semsearch train cross-encoder --data pairs.csv --output my-reranker
    semsearch train adapt corpus.csv
    semsearch train pretrain corpus.csv --size tiny
    semsearch train contrast corpus.csv --base bert --output encoder
    semsearch train translate --parallel stsb-multi:pt --output minilm-pt
    semsearch train distill minilm corpus.csv
    """
