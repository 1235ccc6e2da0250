"""What the subcommands of ``semsearch train`` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import click

from semsearch.cli.corpus_options import corpus_options
from semsearch.cli.interruption import interruptible, run_options
from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus, CorpusFormat
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import Precision
from semsearch.errors import BadRowError, CombinationError, refuse
from semsearch.texts import quantity
from semsearch.training import Recipe, Settings, Task, Trained, train
from semsearch.training.processes import is_main
from semsearch.training.run import CURVE
from semsearch.training.stages import one_each

Command = TypeVar("Command", bound=Callable[..., None])

#: The fields of a recipe that exclude each other, all unset.
LENGTHS: dict[str, Any] = dict.fromkeys(("epochs", "steps", "minutes"))
#: The folder of models that are made from a corpus, unless `--output` names another.
MODELS = Path("models")

output_option = click.option(
    "--output",
    required=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where the model goes.",
)
tests_option = click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="NAME|FILE",
    help="What the finished model is tested on, such as stsbenchmark.",
)
precision_option = click.option(
    "--precision",
    type=click.Choice(["auto", "fp32", "bf16"]),
    default="auto",
    callback=lambda context, option, value: Precision(value),
    show_default=True,
    help="In which numbers to compute: auto is bf16 where the processor has it.",
)

#: The options of commands that train on labelled data.
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
        metavar="NAME|FILE",
        help="What to train on; given more than once, in turn.",
    ),
    click.option("--mix", is_flag=True, help="Train on all --data at once instead of in turn."),
    output_option,
    click.option(
        "--dev",
        "development",
        metavar="NAME|FILE|none",
        help="What chooses the best checkpoint.  [default: the published set that belongs to the "
        "data, else a tenth of the data, held out]",
    ),
    tests_option,
    click.option(
        "--scale",
        type=(float, float),
        metavar="LOW HIGH",
        help="The lowest and highest gold score of files.  [default: found from the scores]",
    ),
    click.option(
        "--keep-leaks",
        is_flag=True,
        help="Train also on pairs that are in the development or test sets.",
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
    precision_option,
    run_options,
)


def corpus_training_options(output: str) -> Callable[[Command], Command]:
    """The options of commands that train on a corpus; `output` describes the default folder."""
    return together(
        click.option("--steps", type=int, metavar="N", help="How long to train."),
        click.option("--minutes", type=float, metavar="M", help="Or for how many minutes."),
        click.option(
            "--epochs",
            type=float,
            metavar="N",
            help="Or how often to read the corpus.  [default: contrast 2; pretrain 10000 steps; "
            "else 1]",
        ),
        click.option(
            "--learning-rate", type=float, metavar="R", help="[default: by the kind of model]"
        ),
        click.option("--batch-size", type=int, metavar="N", help="Texts or pairs in a step."),
        click.option("--seed", default=Recipe.seed, show_default=True, metavar="N"),
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help=f"Where the model goes.  [default: {output}]",
        ),
        run_options,
        corpus_options,
        click.option("--title-column", metavar="C", help="The column that holds the titles."),
    )


def train_on_corpus(
    make: Callable[[Corpus | None, str], Task],
    corpora: tuple[str, ...],
    default_name: str,
    *,
    output: Path | None,
    **choices: Any,
) -> tuple[Trained, Task]:
    """Train on a corpus, and print the results.

    Args:
        make: the task, from the corpus and its name.
        corpora: files and folders; none for a task without a corpus.
        default_name: that of the model in `models`, with ``{}`` for the name of the corpus.
        output: the folder of the model; None takes the default name.
        choices: fields of `Recipe` and `Settings`, and how the corpus is read.
    """
    given = {name: value for name, value in _taken(choices, Recipe).items() if value is not None}
    settings = _taken(choices, Settings)
    with IndexingProgress("examples", "reading the corpus", quiet=not is_main()) as progress:
        corpus = _opened_corpus(corpora, progress, **choices) if corpora else None
        name = "no corpus" if corpus is None else corpus.name
        task = make(corpus, name)
        recipe = task.recipe_for(settings["base"])
        if given.keys() & LENGTHS.keys():
            recipe = replace(recipe, **LENGTHS)
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
    return trained, task


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
        raise CombinationError("name what to train on: --data NAME|FILE")
    parts = 1 if choices["mix"] else len(data)
    recipe = Recipe(**_taken(choices, Recipe))
    recipes = [
        replace(recipe, epochs=times, learning_rate=rate)
        for times, rate in zip(
            one_each(epochs or (None,), parts, "--epochs"),
            one_each(learning_rates or (recipe.learning_rate,), parts, "--learning-rate"),
            strict=True,
        )
    ]
    train_and_print(task, Settings(data=data, recipes=recipes, **choices))


def train_and_print(task: Task, settings: Settings) -> None:
    """Train with a progress bar, and print the results."""
    with IndexingProgress("examples", "loading the model", quiet=not is_main()) as progress:
        trained = _trained(task, settings, progress)
    _print_results(trained)


def _print_results(trained: Trained) -> None:
    """Print the scores of a model, and where it is."""
    for test in trained.tests:
        width = f", {quantity(test.dimension, 'dimension')}" if test.dimension else ""
        base = "" if test.before is None else f", base model {test.before:.2f}"
        click.echo(visible(f"{test.data}: {test.score:.2f}{base} ({test.measure}{width})"))
    if trained.is_kept:
        has_curve = (trained.folder / CURVE).is_file()  # not where nothing was trained
        parts = f"its card, its curve ({CURVE})" if has_curve else "its card"
        click.echo(visible(f"{trained.folder}: the model, {parts}"))


def _taken(choices: dict[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Take those choices away that are fields of a dataclass."""
    return {field.name: choices.pop(field.name) for field in fields(kind) if field.name in choices}


def _trained(task: Task, settings: Settings, progress: IndexingProgress) -> Trained:
    with interruptible(progress):
        trained = train(
            task, settings, lambda message: progress.note(visible(message)), progress.update
        )
        if is_main():
            return trained
    raise SystemExit(0)  # the main process prints the results


def _opened_corpus(
    paths: tuple[str, ...],
    progress: IndexingProgress,
    *,
    input_format: str | None,
    skip_bad_rows: bool,
    **columns: Any,
) -> Corpus:
    """The corpus of these files; its messages go to `progress`."""

    def skip(error: BadRowError) -> None:
        progress.note(visible(f"skipped {error}"))

    return Corpus(
        list(paths),
        format=CorpusFormat(input_format) if input_format else None,
        notify=lambda message: progress.note(visible(message)),
        on_bad_row=skip if skip_bad_rows else refuse,
        **columns,
    )
