"""``semsearch train``: data in, a model out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.cli.training_options import training_options
from semsearch.encoders.precision import Precision
from semsearch.errors import TrainingStoppedError
from semsearch.training import Course, CrossEncoding, Loss, Recipe, Siamese, train
from semsearch.training.lessons import one_each
from semsearch.training.run import Pupil

__all__ = ["command"]

#: What a shell says of a program that Ctrl-C ended.
INTERRUPTED_STATUS = 130


@click.group("train", context_settings={"max_content_width": 100})
def command() -> None:
    """Train an encoder or a reranker on your data.

    \b
    semsearch train siamese --data pairs.csv --loss cosine --output my-encoder
    semsearch train cross-encoder --data pairs.csv --output my-reranker
    """


@command.command("siamese")
@click.option(
    "--loss",
    "losses",
    multiple=True,
    required=True,
    type=click.Choice([loss.value for loss in Loss]),
    help="Once, or once a --data.",
)
@click.option(
    "--margin",
    default=Recipe.margin,
    show_default=True,
    metavar="M",
    help="Of the triplet loss, by Euclidean distance.",
)
@training_options
def siamese(losses: tuple[str, ...], data: tuple[str, ...], **choices: Any) -> None:
    """Train a bi-encoder: what --encoder takes.

    \b
    --loss    learns from                                          columns of a file
    softmax   pairs with labels, by u, v and |u - v|               sentence1, sentence2, label
    cosine    pairs with gold scores, by the cosine                sentence1, sentence2, score
    cosent    pairs with gold scores, by their order               sentence1, sentence2, score
    ranking   positive pairs against the others of the batch       anchor, positive [, negative]
    triplet   positive nearer than negative by a margin            anchor, positive, negative

    FILE is CSV, TSV, JSON lines, JSON or Parquet. NAME is a published set in the folder that
    SEMSEARCH_DATA names, with its part: stsbenchmark:train. Pairs that also stand in the
    development or test sets, in either order, are told and left out. The checkpoint that scores
    best on the development set is kept.

    DIR appears when the model is finished; until then checkpoints lie in DIR.training, and
    --resume goes on from there after Ctrl-C or a kill.

    \b
    semsearch train siamese --data stsbenchmark:train --loss cosine --test stsbenchmark \\
        --output my-encoder
    semsearch train siamese --base bert-base-uncased --data nli.csv --loss softmax \\
        --data stsbenchmark:train --loss cosine --output sbert
    """
    parts = 1 if choices["mix"] else len(data)
    chosen = [Loss(loss) for loss in one_each(losses, parts, "--loss")]
    _train(Siamese(chosen * len(data) if choices["mix"] else chosen), data, **choices)


@command.command("cross-encoder")
@training_options
def cross_encoder(data: tuple[str, ...], **choices: Any) -> None:
    """Train a cross-encoder: what --rerank and --encoder cross-encoder:DIR take.

    It learns from pairs with gold scores (columns sentence1, sentence2, score) or with labels
    (sentence1, sentence2, label). What is read, checked, kept and resumed is as with
    `semsearch train siamese`. Scores and two classes need one output, which ranks; more classes
    one each, with which it cannot rerank.

    \b
    semsearch train cross-encoder --data stsbenchmark:train --test stsbenchmark --output my-reranker
    semsearch train cross-encoder --data nli.csv --data stsbenchmark:train --learning-rate 5e-5 \\
        --layer-decay 0.9 --output my-reranker
    """
    _train(CrossEncoding(), data, **choices)


def _train(
    pupil: Pupil,
    data: Sequence[str],
    *,
    base: str,
    output: Path,
    development: str | None,
    tests: tuple[str, ...],
    mix: bool,
    scale: tuple[float, float] | None,
    keep_leaks: bool,
    resume: bool,
    overwrite: bool,
    epochs: tuple[float, ...],
    learning_rates: tuple[float, ...],
    precision: str,
    **recipe: Any,
) -> None:
    parts = 1 if mix else len(data)
    recipes = [
        Recipe(epochs=times, learning_rate=rate, precision=Precision(precision), **recipe)
        for times, rate in zip(
            one_each(epochs or (None,), parts, "--epochs"),
            one_each(learning_rates or (Recipe.learning_rate,), parts, "--learning-rate"),
            strict=True,
        )
    ]
    course = Course(
        base=base,
        output=output,
        data=data,
        recipes=recipes,
        development=development,
        tests=tests,
        mix=mix,
        scale=scale,
        keep_leaks=keep_leaks,
        resume=resume,
        overwrite=overwrite,
    )
    with IndexingProgress("examples", beginning="loading the model") as progress:
        last: int | None = None

        def on_progress(done: int, total: int) -> None:
            nonlocal last
            if last is None or done <= last:  # another stage, or the rest of one
                progress.restart(done, done / total)
            last = done
            progress.update(done, done / total)

        try:
            trained = train(
                pupil, course, lambda message: progress.note(visible(message)), on_progress
            )
        except TrainingStoppedError as stopped:
            progress.note(visible(str(stopped)))
            click.get_current_context().exit(INTERRUPTED_STATUS)
    for test in trained.tests:
        click.echo(visible(f"{test.data}: {test.score:.2f} ({test.measure})"))
    click.echo(visible(f"{trained.folder}: the model, its card, its curve (training.png)"))
