"""``semsearch train translate``: translated sentences in, a multilingual encoder out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.options import complete_file
from semsearch.cli.training_options import (
    base_option,
    run_options,
    tests_option,
    train_on_pairs,
)
from semsearch.training import Translation


@click.command("translate")
@base_option
@click.option(
    "--parallel",
    multiple=True,
    required=True,
    metavar="FILE|NAME",
    shell_complete=complete_file,
    help="English sentences with translations; give at least once per language.",
)
@click.option(
    "--language",
    "languages",
    multiple=True,
    metavar="CODE",
    help="Such as pt; give once, or once per --parallel.  [default: as named by the file or set]",
)
@tests_option
@run_options("models/NAME-OF-THE-TEXT-translate", "3", "5e-05", 80)
def command(
    parallel: tuple[str, ...],
    languages: tuple[str, ...],
    epochs: float | None,
    learning_rate: float | None,
    **choices: Any,
) -> None:
    """Teach an encoder other languages, from sentences in English and their translations.

    Words of the languages are added to its vocabulary, each with the mean vector of its English
    translations (by a dictionary learnt from the sentences); then the model is trained to give a
    translation the vector that it gave to the English sentence. A few thousand sentences help,
    more help more.

    FILE is a table with the columns source and translation (or only two columns), or the
    translation in a pair of line-aligned files: news.pt beside news.en. NAME is
    stsb-multi:LANGUAGE, the training split of STS Benchmark, from `semsearch datasets fetch`.
    Some sentences are held out; the checkpoint whose vectors of them are nearest to the
    teacher's is kept. The result is tested on STS Benchmark if it is on this machine.

    \b
    semsearch train translate --parallel stsb-multi:pt --output minilm-pt
    semsearch train translate --parallel pairs.csv --language fr --output minilm-fr
    semsearch index corpus.csv --encoder ./minilm-pt
    """
    train_on_pairs(
        Translation(languages or (None,)),
        parallel,
        epochs=() if epochs is None else (epochs,),
        learning_rate=() if learning_rate is None else (learning_rate,),
        **choices,
    )
