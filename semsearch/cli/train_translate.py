"""``semsearch train translate``: translated sentences in, an encoder of more languages out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from semsearch.cli.command import Command
from semsearch.cli.interruption import interruptible, run_options
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import Precision
from semsearch.training import Course, Translation, train
from semsearch.training.translation import RECIPE


@click.command("translate", cls=Command)
@click.option(
    "--teacher",
    default=DEFAULT_ENCODER,
    show_default=True,
    metavar="MODEL",
    help="The model that learns: minilm, or a Sentence-Transformers model with word pieces.",
)
@click.option(
    "--parallel",
    multiple=True,
    required=True,
    metavar="FILE|NAME",
    help="Sentences in English with translations; once a language, or more often.",
)
@click.option(
    "--language",
    "languages",
    multiple=True,
    metavar="CODE",
    help="Such as pt; once, or once a --parallel.  [default: as the file or set names it]",
)
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the model goes.",
)
@click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="NAME|FILE",
    help="Scored pairs to test on, besides STS Benchmark in these languages.",
)
@click.option("--epochs", type=float, metavar="N", help="How often to read them.  [default: 3]")
@click.option("--batch-size", default=RECIPE.batch_size, show_default=True, metavar="N")
@click.option("--learning-rate", default=RECIPE.learning_rate, show_default=True, metavar="R")
@click.option(
    "--embedding-learning-rate",
    default=RECIPE.embedding_learning_rate,
    show_default=True,
    metavar="R",
    help="That of words.",
)
@click.option("--seed", default=RECIPE.seed, show_default=True, metavar="N")
@click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "bf16"]),
    default="auto",
    show_default=True,
    help="In which numbers to compute: auto takes bf16 where the processor has it.",
)
@run_options
def command(
    teacher: str,
    parallel: tuple[str, ...],
    languages: tuple[str, ...],
    output: Path,
    tests: tuple[str, ...],
    epochs: float | None,
    batch_size: int,
    learning_rate: float,
    embedding_learning_rate: float,
    seed: int,
    precision: str,
    resume: bool,
    overwrite: bool,
) -> None:
    """Teach an encoder other languages, from sentences in English and their translations.

    Words of the languages are added to its vocabulary, each with the mean vector of its English
    translations (a dictionary is learnt from the sentences); then the model learns to give a
    translation the vector that it gave to the English sentence. Some thousand sentences help,
    more help more.

    FILE is a table with the columns source and translation (or only two), a TMX file, or the
    translated one of two files with a sentence a line: news.pt beside news.en. NAME is
    stsb-multi:LANGUAGE, the training split of STS Benchmark, in the folder that SEMSEARCH_DATA
    names. Some sentences are held out; the checkpoint whose vectors of them are nearest to the
    teacher's is kept. The result is tested on STS Benchmark where that is here.

    \b
    semsearch train translate --parallel stsb-multi:pt --output minilm-pt
    semsearch train translate --parallel memory.tmx --language fr --parallel news.de \\
        --language de --output minilm-fr-de
    semsearch index corpus.csv --encoder ./minilm-pt
    """
    recipe = replace(
        RECIPE,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        embedding_learning_rate=embedding_learning_rate,
        seed=seed,
        precision=Precision(precision),
    )
    course = Course(
        base=teacher,
        output=output,
        data=parallel,
        recipes=[recipe],
        tests=tests,
        resume=resume,
        overwrite=overwrite,
    )
    with (
        IndexingProgress("sentences", beginning="loading the model") as progress,
        interruptible(progress),
    ):

        def note(message: str) -> None:
            progress.note(visible(message))

        trained = train(
            Translation(languages or (None,), note),
            course,
            note,
            lambda done, total: progress.update(done, done / total),
        )
    for test in trained.tests:
        told = f"{test.data}: {test.score:.2f} after {test.before:.2f} ({test.measure})"
        click.echo(visible(told))
    click.echo(visible(f"{trained.folder}: the model, its card, its curve (training.png)"))
