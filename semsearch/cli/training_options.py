"""What the subcommands of ``semsearch train`` that learn from labels share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from semsearch.cli.interruption import interruptible, run_options
from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import Precision
from semsearch.texts import quantity
from semsearch.training import Course, Recipe, train
from semsearch.training.lessons import one_each
from semsearch.training.run import Pupil

Command = TypeVar("Command", bound=Callable[..., None])

#: What both take.
training_options = together(
    click.option(
        "--base",
        default=DEFAULT_ENCODER,
        show_default=True,
        metavar="MODEL",
        help="The model to begin with: minilm, a folder, or a name on the hub.",
    ),
    click.option(
        "--data",
        multiple=True,
        required=True,
        metavar="NAME|FILE",
        help="What to train on; given more than once, in turn.",
    ),
    click.option("--mix", is_flag=True, help="Train on all --data at once instead of in turn."),
    click.option(
        "--output",
        required=True,
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Where the model goes.",
    ),
    click.option(
        "--dev",
        "development",
        metavar="NAME|FILE|none",
        help="What chooses the best checkpoint.  [default: the published set that belongs to the "
        "data, else a tenth of the data, held out]",
    ),
    click.option(
        "--test",
        "tests",
        multiple=True,
        metavar="NAME|FILE",
        help="What the finished model is tested on.",
    ),
    click.option(
        "--scale",
        type=(float, float),
        metavar="LOW HIGH",
        help="The lowest and highest gold score of files.  [default: found from the scores]",
    ),
    click.option(
        "--keep-leaks",
        is_flag=True,
        help="Train also on pairs that stand in the development or test sets.",
    ),
    click.option(
        "--epochs",
        "epochs",
        multiple=True,
        type=float,
        metavar="N",
        help="How often each example is seen; once, or once a --data.  [default: 4 for scored "
        "pairs, else 1]",
    ),
    click.option(
        "--learning-rate",
        "learning_rates",
        multiple=True,
        type=float,
        metavar="R",
        help=f"Once, or once a --data.  [default: {Recipe.learning_rate:g}]",
    ),
    click.option("--batch-size", default=Recipe.batch_size, show_default=True, metavar="N"),
    click.option(
        "--warmup",
        default=Recipe.warmup,
        show_default=True,
        metavar="PART",
        help="The part of the steps in which the learning rate rises.",
    ),
    click.option("--weight-decay", default=Recipe.weight_decay, show_default=True, metavar="W"),
    click.option(
        "--layer-decay",
        default=Recipe.layer_decay,
        show_default=True,
        metavar="D",
        help="What the learning rate is multiplied by from each layer to the one beneath.",
    ),
    click.option(
        "--max-tokens",
        type=int,
        metavar="N",
        help="How much of a text is read.  [default: as much as the base model reads]",
    ),
    click.option("--seed", default=Recipe.seed, show_default=True, metavar="N"),
    click.option(
        "--evaluate-every",
        type=int,
        metavar="STEPS",
        help="Score on --dev and write a checkpoint.  [default: an epoch, at most 1000 steps]",
    ),
    click.option(
        "--patience",
        type=int,
        metavar="N",
        help="Stop after N scores that are no better.  [default: never]",
    ),
    click.option(
        "--precision",
        type=click.Choice(["auto", "fp32", "bf16"]),
        default="auto",
        show_default=True,
        help="In which numbers to compute: auto takes bf16 where the processor has it.",
    ),
    run_options,
)


def train_as_asked(
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
    """Train by what was given on the command line, and tell what came of it."""
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
    with (
        IndexingProgress("examples", beginning="loading the model") as progress,
        interruptible(progress),
    ):
        trained = train(
            pupil,
            course,
            lambda message: progress.note(visible(message)),
            lambda done, total: progress.update(done, done / total),
        )
    for test in trained.tests:
        width = f", {quantity(test.dimension, 'dimension')}" if test.dimension else ""
        click.echo(visible(f"{test.data}: {test.score:.2f} ({test.measure}{width})"))
    click.echo(visible(f"{trained.folder}: the model, its card, its curve (training.png)"))
