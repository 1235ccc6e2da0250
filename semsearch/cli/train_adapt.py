"""``semsearch train adapt``: an encoder fitted to the corpus, if it passes a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.options import complete_file, judged_option
from semsearch.cli.training_options import corpus_training_options, train_on_corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError
from semsearch.evaluation.datasets import read_questions
from semsearch.training import Adaptation


@click.command("adapt", cls=Command)
@click.argument(
    "corpora", metavar="CORPUS...", shell_complete=complete_file, nargs=-1, required=True
)
@click.option(
    "--base",
    metavar="MODEL",
    shell_complete=complete_file,
    default=DEFAULT_ENCODER,
    show_default=True,
    help="The encoder to adapt: minilm, or a Sentence-Transformers model by name or folder.",
)
@judged_option("Measure with your own queries: ")
@click.option("--force", is_flag=True, help="Write the model even if it does not pass the test.")
@corpus_training_options("models/NAME-OF-THE-CORPUS-adapted", "1", 32)
def command(
    corpora: tuple[str, ...], queries: Path | None, qrels: Path | None, force: bool, **choices: Any
) -> None:
    """Fit an encoder to a corpus, without labels.

    CORPUS is read as `semsearch index` reads it. The training questions are titles that the text
    does not repeat, and sentences taken out of their context. Old and new weights are averaged.

    The model is written only if nDCG@10 rises beyond chance on your own queries, or, without these,
    on keywords and half sentences of held-out documents, and if the STS Benchmark score, where
    its data are on this machine, does not fall by more than a point. Otherwise the exit status
    is 1. Give your own queries if you have any: they best show what your users ask.

    \b
    semsearch train adapt corpus.csv
    semsearch train adapt papers.csv --queries questions.csv --qrels answers.csv
    semsearch train adapt films.json --text-column extract --minutes 30 --output models/films
    semsearch index films.json --text-column extract --encoder models/films
    """
    if (queries is None) != (qrels is None):
        raise ArgumentError("--queries and --qrels go together")
    judged = None
    if queries is not None and qrels is not None:
        judged = read_questions(queries, qrels, lambda name: True)
    trained = train_on_corpus(
        lambda corpus, name: Adaptation(corpus or (), name, force, judged),
        corpora,
        "{}-adapted",
        **choices,
    )
    if not trained.is_kept:
        click.get_current_context().exit(1)
