"""``semsearch train translate``: translated sentences in, a multilingual encoder out."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.interruption import run_options
from semsearch.cli.options import complete_file
from semsearch.cli.training_options import (
    output_option,
    precision_option,
    tests_option,
    train_and_print,
)
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.training import Translation

RECIPE = Translation.recipe


@click.command("translate", cls=Command)
@click.option(
    "--base",
    default=DEFAULT_ENCODER,
    show_default=True,
    metavar="MODEL",
    shell_complete=complete_file,
    help="The model to teach: minilm, or a Sentence-Transformers model with word pieces.",
)
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
@output_option
@tests_option
@click.option("--epochs", type=float, metavar="N", help="Passes over the sentences.  [default: 3]")
@click.option("--batch-size", default=RECIPE.batch_size, show_default=True, metavar="N")
@click.option("--learning-rate", default=RECIPE.learning_rate, show_default=True, metavar="R")
@click.option(
    "--embedding-learning-rate",
    default=RECIPE.embedding_learning_rate,
    show_default=True,
    metavar="R",
    help="Learning rate of the word embeddings.",
)
@click.option("--seed", default=RECIPE.seed, show_default=True, metavar="N")
@precision_option
@run_options
def command(
    base: str, parallel: tuple[str, ...], languages: tuple[str, ...], **choices: Any
) -> None:
    """Teach an encoder other languages, from sentences in English and their translations.

    Words of the languages are added to its vocabulary, each with the mean vector of its English
    translations (by a dictionary learnt from the sentences); then the model is trained to give a
    translation the vector that it gave to the English sentence. A few thousand sentences help,
    more help more.

    FILE is a table with the columns source and translation (or only two columns), a TMX file, or
    the translation in a pair of line-aligned files: news.pt beside news.en. NAME is
    stsb-multi:LANGUAGE, the training split of STS Benchmark, from `semsearch datasets fetch`.
    Some sentences are held out; the checkpoint whose vectors of them are nearest to the
    teacher's is kept. The result is tested on STS Benchmark if it is on this machine.

    \b
    semsearch train translate --parallel stsb-multi:pt --output minilm-pt
    semsearch train translate --parallel memory.tmx --language fr --parallel news.de \\
        --language de --output minilm-fr-de
    semsearch index corpus.csv --encoder ./minilm-pt
    """
    names = [field.name for field in fields(RECIPE) if field.name in choices]
    recipe = replace(RECIPE, **{name: choices.pop(name) for name in names})
    train_and_print(Translation(languages or (None,)), parallel, [recipe], base=base, **choices)
