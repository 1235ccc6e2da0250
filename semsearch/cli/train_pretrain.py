"""``semsearch train pretrain``: a corpus in, a BERT out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.options import complete_file
from semsearch.cli.training_options import corpus_training_options, train_on_corpus
from semsearch.errors import ArgumentError
from semsearch.training import Pretraining
from semsearch.training.pretrain import VOCABULARY, BertSize


@click.command("pretrain", cls=Command)
@click.argument(
    "corpora", metavar="CORPUS...", shell_complete=complete_file, nargs=-1, required=True
)
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
@click.option("--cased", is_flag=True, help="Keep capitals and accents.")
@click.option(
    "--max-tokens",
    type=int,
    default=128,
    show_default=True,
    metavar="N",
    help="Maximum tokens per pair of spans, and later per text; up to 512.",
)
@corpus_training_options("models/NAME-OF-THE-CORPUS-SIZE", "none, but 10000 steps", 64)
def command(
    corpora: tuple[str, ...],
    size: str | None,
    base: str | None,
    vocabulary: int | None,
    cased: bool,
    **choices: Any,
) -> None:
    """Pre-train a BERT on a corpus: masked words and next sentences.

    CORPUS is read as `semsearch index` reads it; documents of one sentence are not used. A
    twentieth of the documents is held out; the losses on them are printed during training, and
    the checkpoint with the lowest is kept. `--steps 0` writes random weights, which
    `semsearch train contrast` can start from. The result is a plain BERT, for fine-tuning: its
    vectors are not yet good for search.

    \b
    semsearch train pretrain corpus.csv --size tiny --minutes 10
    semsearch train pretrain films.json --text-column extract --steps 20000 --output models/films
    semsearch train pretrain notes/ --base ./bert-base-uncased --steps 2000
    """
    if base and (size or vocabulary is not None or cased or choices["steps"] == 0):
        raise ArgumentError("--size, --vocabulary, --cased, --steps 0 are for a BERT from scratch")
    chosen = BertSize[size.upper()] if size else BertSize.SMALL
    train_on_corpus(
        lambda corpus, name: Pretraining(
            corpus or (), name, chosen, vocabulary or VOCABULARY, cased
        ),
        corpora,
        f"{{}}-{'continued' if base else size or 'small'}",
        base=base,
        **choices,
    )
