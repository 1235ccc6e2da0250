"""``semsearch train pretrain``: a corpus in, a BERT out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.training_options import corpora_argument, corpus_options, train_on_corpus
from semsearch.training import Pretraining
from semsearch.training.pretrain import VOCABULARY, BertSize


@click.command("pretrain")
@corpora_argument
@click.option(
    "--size",
    type=click.Choice([size.name.lower() for size in BertSize]),
    default="small",
    show_default=True,
    help="Layers and width: 2 x 128, 4 x 256, 4 x 512 or 12 x 768.",
)
@click.option(
    "--vocabulary",
    type=int,
    default=VOCABULARY,
    show_default=True,
    metavar="N",
    help="Maximum word pieces.",
)
@corpus_options("models/NAME-OF-THE-CORPUS-SIZE", "10000 steps", "by the size", 64)
def command(
    corpora: tuple[str, ...],
    size: str,
    vocabulary: int,
    **choices: Any,
) -> None:
    """Pre-train a BERT on a corpus: masked words and next sentences.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index; documents of one
    sentence are not used. A twentieth of the documents is held out; the losses on them are printed
    during training, and the checkpoint with the lowest is kept. `--epochs 0` writes random weights,
    which `semsearch train contrast` can start from. The result is a plain BERT, for fine-tuning:
    its vectors are not yet good for search.

    \b
    semsearch train pretrain corpus.csv --size tiny --set steps=2000
    semsearch train pretrain films.json --text-column extract --epochs 3 --output models/films
    """
    train_on_corpus(
        lambda documents, name: Pretraining(documents, name, BertSize[size.upper()], vocabulary),
        corpora,
        f"{{}}-{size}",
        base=None,
        **choices,
    )
