"""``semsearch train contrast``: a corpus in, a bi-encoder out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.corpus_options import corpus_options
from semsearch.cli.interruption import interruptible, run_options
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.cli.unsupervised_options import MODELS, opened_corpus, output_option
from semsearch.training import Contrast, Course, train
from semsearch.training.contrast import RECIPE, suiting_rate


@click.command("contrast", cls=Command)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@click.option(
    "--base",
    required=True,
    metavar="MODEL",
    help="A BERT, such as `semsearch train pretrain` writes, or a sentence encoder.",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="NAME|FILE",
    help="Pairs to test on, as stsbenchmark.",
)
@click.option("--epochs", default=RECIPE.epochs, show_default=True, metavar="N")
@click.option("--batch-size", default=RECIPE.batch_size, show_default=True, metavar="N")
@click.option(
    "--learning-rate",
    type=float,
    metavar="R",
    help="[default: 1e-3 for a BERT of up to 256 dimensions, 5e-4 for one of up to 512, else "
    f"{RECIPE.learning_rate:g}]",
)
@click.option("--seed", default=RECIPE.seed, show_default=True, metavar="N")
@output_option("models/NAME-OF-THE-CORPUS-contrast")
@run_options
@corpus_options
@click.option("--title-column", metavar="C", help="The column that holds the titles.")
def command(
    corpora: tuple[str, ...],
    base: str,
    tests: tuple[str, ...],
    epochs: float,
    batch_size: int,
    learning_rate: float | None,
    seed: int,
    path: Path | None,
    resume: bool,
    overwrite: bool,
    **reading: Any,
) -> None:
    """Make a bi-encoder from a corpus, without labels.

    CORPUS is read as `semsearch index` reads it. A title and the sentence after it, and sentences
    next to each other, belong together; the model learns to find each among the others of a large
    batch. A twentieth of the documents is held out, and the checkpoint that finds most of their
    pairs is kept. It is a beginning for `semsearch train siamese` where there are few labels.

    \b
    semsearch train pretrain corpus.csv --size tiny --steps 0 --output bert
    semsearch train contrast corpus.csv --base bert --output encoder
    semsearch train siamese --base encoder --data pairs.csv --output my-encoder
    """
    rate = suiting_rate(base) if learning_rate is None else learning_rate
    recipe = replace(RECIPE, epochs=epochs, batch_size=batch_size, learning_rate=rate, seed=seed)
    with IndexingProgress("pairs", "reading the corpus") as progress:
        corpus = opened_corpus(corpora, progress, **reading)
        course = Course(
            base=base,
            output=path or MODELS / f"{corpus.name}-contrast",
            data=corpora,
            recipes=[recipe],
            tests=tests,
            resume=resume,
            overwrite=overwrite,
        )
        with interruptible(progress):
            trained = train(
                Contrast(corpus, corpus.name),
                course,
                lambda message: progress.note(visible(message)),
                lambda done, total: progress.update(done, done / total),
            )
    for test in trained.tests:
        told = f"{test.data}: {test.score:.2f} after {test.before:.2f} ({test.measure})"
        click.echo(visible(told))
    click.echo(visible(f"{trained.folder}: the model, its card, its curve (training.png)"))
