"""``semsearch train adapt``: an encoder fitted to the corpus, if it passes a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import judged_option
from semsearch.cli.training_options import (
    base_option,
    corpora_argument,
    corpus_options,
    train_on_corpus,
)
from semsearch.errors import ArgumentError
from semsearch.evaluation.datasets import read_questions
from semsearch.training import Adaptation


@click.command("adapt")
@corpora_argument
@base_option
@judged_option("Measure with your own queries: ")
@corpus_options("models/NAME-OF-THE-CORPUS-adapted", "1", "2e-05", 32)
def command(
    corpora: tuple[str, ...], queries: Path | None, qrels: Path | None, **choices: Any
) -> None:
    """Fit an encoder to a corpus, without labels.

    CORPUS is read as `semsearch index` reads it, or is the directory of an index. The training
    questions are titles that the text does not repeat, and sentences taken out of their context.
    Old and new weights are averaged.

    The model is written only if nDCG@10 rises beyond chance on your own queries, or, without these,
    on keywords and half sentences of held-out documents, and if the STS Benchmark score, where
    its data are on this machine, does not fall by more than a point. Otherwise the exit status
    is 1. Give your own queries if you have any: they best show what your users ask.

    \b
    semsearch train adapt corpus.csv
    semsearch train adapt papers.csv --queries questions.csv --qrels answers.csv
    semsearch train adapt films.json --text-column extract --output models/films
    semsearch index films.json --text-column extract --encoder models/films
    """
    if (queries is None) != (qrels is None):
        raise ArgumentError("--queries and --qrels go together")
    judged = None
    if queries is not None and qrels is not None:
        judged = read_questions(queries, qrels, lambda name: True)
    trained = train_on_corpus(
        lambda documents, name: Adaptation(documents, name, judged),
        corpora,
        "{}-adapted",
        **choices,
    )
    if not trained.is_kept:
        click.get_current_context().exit(1)
