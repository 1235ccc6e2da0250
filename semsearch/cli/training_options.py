"""What the subcommands of ``semsearch train`` share."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

from semsearch.cli.corpus_options import BadRows, corpus_options, opened_corpus
from semsearch.cli.interruption import interruptible, run_options
from semsearch.cli.options import Decorator, complete_file, together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError, quantity
from semsearch.training import Recipe, Settings, Task, Trained, train
from semsearch.training.stages import is_main, per_stage

#: The mutually exclusive fields of a recipe, all unset.
LENGTHS: dict[str, Any] = dict.fromkeys(("epochs", "steps", "minutes"))
#: The default folder of models trained on a corpus.
MODELS = Path("models")

output_option = click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Output folder of the model.  [default: models/NAME-OF-THE-DATA-KIND]",
)
tests_option = click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=complete_file,
    help="Test set for the finished model, such as stsbenchmark; may be repeated.",
)
precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "bf16"]),
    default="auto",
    callback=lambda context, option, value: Precision(value),
    show_default=True,
    help="Number format: auto is bf16 where the processor supports it.",
)

#: The options of commands that train on labelled data.
training_options = together(
    click.option(
        "--base",
        default=DEFAULT_ENCODER,
        show_default=True,
        metavar="MODEL",
        shell_complete=complete_file,
        help="The base model: minilm, a folder, or a name on the hub.",
    ),
    click.option(
        "--data",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=complete_file,
        help="Training set; repeat it to train on several sets in turn.",
    ),
    click.option("--mix", is_flag=True, help="Train on all --data at once instead of in turn."),
    output_option,
    click.option(
        "--dev",
        "development",
        metavar="NAME|FILE|none",
        shell_complete=complete_file,
        help="Development set, which selects the best checkpoint.  [default: the published one for "
        "the data, else a held-out tenth of 100 or more examples]",
    ),
    tests_option,
    click.option(
        "--scale",
        type=(float, float),
        metavar="LOW HIGH",
        help="Lowest and highest possible gold score in files.  [default: guessed from the scores]",
    ),
    click.option(
        "--allow-overlap",
        is_flag=True,
        help="Train also on pairs that are in the development or test sets.",
    ),
    click.option(
        "--epochs",
        "epochs",
        multiple=True,
        type=float,
        metavar="N",
        help="Passes over the data; give once, or once per --data.  [default: 4 for scored "
        "pairs, else 1]",
    ),
    click.option(
        "--learning-rate",
        "learning_rates",
        multiple=True,
        type=float,
        metavar="R",
        help=f"Peak rate; give once, or once per --data.  [default: {Recipe.learning_rate:g}]",
    ),
    click.option("--batch-size", default=Recipe.batch_size, show_default=True, metavar="N"),
    click.option(
        "--warmup",
        default=Recipe.warmup,
        show_default=True,
        metavar="PART",
        help="Fraction of the steps in which the learning rate rises.",
    ),
    click.option("--weight-decay", default=Recipe.weight_decay, show_default=True, metavar="W"),
    click.option(
        "--layer-decay",
        default=Recipe.layer_decay,
        show_default=True,
        metavar="D",
        help="Factor on the learning rate from each layer to the one below.",
    ),
    click.option(
        "--max-tokens",
        type=int,
        metavar="N",
        help="Maximum tokens per text.  [default: the base model's limit]",
    ),
    click.option("--seed", default=Recipe.seed, show_default=True, metavar="N"),
    click.option(
        "--evaluate-every",
        type=int,
        metavar="STEPS",
        help="Steps between evaluations and checkpoints.  [default: an epoch, at most 1000]",
    ),
    click.option(
        "--patience",
        type=int,
        metavar="N",
        help="Stop after N evaluations without a better score.  [default: never]",
    ),
    precision_option,
    run_options,
)


def corpus_training_options(output: str, duration: str, batch_size: int) -> Decorator:
    """The options of commands that train on a corpus.

    Args:
        output: the default folder, for the help.
        duration: the default duration, for the help.
        batch_size: the default, for the help.
    """
    return together(
        click.option("--steps", type=int, metavar="N", help="Number of training steps."),
        click.option("--minutes", type=float, metavar="M", help="Or training time in minutes."),
        click.option(
            "--epochs",
            type=float,
            metavar="N",
            help=f"Or passes over the corpus.  [default: {duration}]",
        ),
        click.option(
            "--learning-rate", type=float, metavar="R", help="[default: depends on the model]"
        ),
        click.option(
            "--batch-size",
            type=int,
            metavar="N",
            help=f"Texts or pairs per step.  [default: {batch_size}]",
        ),
        click.option("--seed", default=Recipe.seed, show_default=True, metavar="N"),
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help=f"Output folder of the model.  [default: {output}]",
        ),
        run_options,
        corpus_options,
        click.option("--title-column", metavar="C", help="Column of titles."),
    )


def train_on_corpus(
    make: Callable[[Corpus | None, str], Task],
    corpora: tuple[str, ...],
    default_name: str,
    *,
    output: Path | None,
    **choices: Any,
) -> Trained:
    """Train on a corpus, and print the results.

    Args:
        make: returns the task, from the corpus and its name.
        corpora: files and folders; none for a task without a corpus.
        default_name: name of the model in `models`, with ``{}`` for the name of the corpus.
        output: the folder of the model; None takes the default name.
        choices: fields of `Recipe` and `Settings`, and how the corpus is read.
    """
    given = {name: value for name, value in _taken(choices, Recipe).items() if value is not None}
    settings = _taken(choices, Settings)
    with IndexingProgress("examples", "reading the corpus", quiet=not is_main()) as progress:
        bad_rows = BadRows(progress, skip=choices.pop("skip_bad_rows"))
        corpus = opened_corpus(list(corpora), progress, bad_rows, **choices) if corpora else None
        name = "no corpus" if corpus is None else corpus.name
        task = make(corpus, name)
        recipe = task.recipe_for(settings["base"])
        if given.keys() & LENGTHS.keys():
            recipe = replace(recipe, **LENGTHS)
        with bad_rows.listed(lambda: deque(corpus or (), maxlen=0)):
            trained = _trained(
                task,
                Settings(
                    output=output or MODELS / default_name.format(name),
                    data=corpora,
                    recipes=[replace(recipe, **given)],
                    **settings,
                ),
                progress,
            )
    _print_results(trained)
    return trained


def train_on_pairs(
    task: Task,
    data: Sequence[str],
    *,
    epochs: tuple[float, ...],
    learning_rates: tuple[float, ...],
    **choices: Any,
) -> None:
    """Train on labelled data, and print the results.

    Args:
        task: what is trained.
        data: training sets, by name or file.
        epochs: one for all sets, or one for each; none takes the default.
        learning_rates: the same.
        choices: further fields of `Recipe` and `Settings`.

    Raises:
        ArgumentError: there is no training set.
    """
    if not data:
        raise ArgumentError("missing option --data")
    parts = 1 if choices["mix"] else len(data)
    recipe = Recipe(**_taken(choices, Recipe))
    recipes = [
        replace(recipe, epochs=times, learning_rate=rate)
        for times, rate in zip(
            per_stage(epochs or (None,), parts, "--epochs"),
            per_stage(learning_rates or (recipe.learning_rate,), parts, "--learning-rate"),
            strict=True,
        )
    ]
    train_and_print(task, data, recipes, **choices)


def train_and_print(
    task: Task,
    data: Sequence[str],
    recipes: Sequence[Recipe],
    *,
    output: Path | None,
    **choices: Any,
) -> None:
    """Train with a progress bar, and print the results."""
    name = re.sub(r"[^\w.-]+", "-", Path(data[0]).stem).strip(".-")
    folder = output or MODELS / f"{name}-{task.name}"
    settings = Settings(output=folder, data=data, recipes=recipes, **choices)
    with IndexingProgress("examples", "loading the model", quiet=not is_main()) as progress:
        trained = _trained(task, settings, progress)
    _print_results(trained)


def _print_results(trained: Trained) -> None:
    """Print the scores of a model, its folder and the verdict on it."""
    for test in trained.tests:
        width = f", {quantity(test.dimension, 'dimension')}" if test.dimension else ""
        gain = ""
        if test.before is not None:
            gain = f", base model {test.before:.2f}"
            if test.low is not None and test.high is not None:
                word = f"gain {test.score - test.before:+.2f}" if test.low > 0 else "no gain"
                gain += f", {word}, 95 % interval {test.low:+.2f} to {test.high:+.2f}"
        click.echo(visible(f"{test.data}: {test.score:.2f}{gain} ({test.measure}{width})"))
    if trained.is_kept:
        click.echo(visible(f"{trained.folder}: the model and its card"))
    if trained.verdict:
        click.echo(visible(trained.verdict))


def _taken(choices: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Remove and return the choices that are fields of a dataclass."""
    return {field.name: choices.pop(field.name) for field in fields(kind) if field.name in choices}


def _trained(task: Task, settings: Settings, progress: IndexingProgress) -> Trained:
    with interruptible(progress):
        trained = train(
            task, settings, lambda message: progress.note(visible(message)), progress.update
        )
        if is_main():
            return trained
    raise SystemExit(0)  # the main process prints the results
