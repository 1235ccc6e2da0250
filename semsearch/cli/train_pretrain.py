"""``semsearch train pretrain``: a corpus in, a BERT out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.options import complete_file
from semsearch.cli.training_options import corpora_argument, corpus_options, train_on_corpus
from semsearch.errors import ArgumentError
from semsearch.training import Pretraining
from semsearch.training.pretrain import VOCABULARY, BertSize


@click.command("pretrain")
@corpora_argument
@click.option(
    "--size",
    type=click.Choice([size.name.lower() for size in BertSize]),
    help="Layers and width: 2 x 128, 4 x 256, 4 x 512 or 12 x 768.  [default: small]",
)
@click.option(
    "--base",
    metavar="MODEL",
    shell_complete=complete_file,
    help="Continue a BERT, by folder or hub name.",
)
@click.option("--vocabulary", type=int, metavar="N", help="Maximum word pieces.  [default: 30522]")
@corpus_options("models/NAME-OF-THE-CORPUS-SIZE", "10000 steps", "by the size", 64)
def command(
    corpora: tuple[str, ...],
    size: str | None,
    base: str | None,
    vocabulary: int | None,
    **choices: Any,
) -> None:
    """Pre-train a BERT on a corpus: masked words and next sentences.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index; documents of one
    sentence are not used. A twentieth of the documents is held out; the losses on them are printed
    during training, and the checkpoint with the lowest is kept. `--epochs 0` writes random weights,
    which `semsearch train contrast` can start from. The result is a plain BERT, for fine-tuning:
    its vectors are not yet good for search.

    \b
    semsearch train pretrain corpus.csv --size tiny --minutes 10
    semsearch train pretrain films.json --text-column extract --epochs 3 --output models/films
    semsearch train pretrain notes/ --base ./bert-base-uncased --set steps=2000
    """
    if base and (size or vocabulary is not None or choices["epochs"] == 0):
        raise ArgumentError("--size, --vocabulary and --epochs 0 are for a BERT from scratch")
    chosen = BertSize[size.upper()] if size else BertSize.SMALL
    train_on_corpus(
        lambda documents, name: Pretraining(documents, name, chosen, vocabulary or VOCABULARY),
        corpora,
        f"{{}}-{'continued' if base else size or 'small'}",
        base=base,
        **choices,
    )
