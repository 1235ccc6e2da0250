"""What the subcommands of ``semsearch train`` share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.corpus_options import BadRows
from semsearch.cli.options import Decorator, complete_file, together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, TrainingStoppedError, with_code
from semsearch.index import Index
from semsearch.records import Document
from semsearch.training import Recipe, Settings, Task, Trained, train
from semsearch.training.stages import per_stage

#: The default folder of models.
MODELS = Path("models")
#: The settings with options of their own.
_OPTIONS = ("epochs", "learning_rate", "batch_size")
#: The others, which `--set` sets, with their types.
SETTABLE = {field.name: str(field.type) for field in fields(Recipe) if field.name not in _OPTIONS}

corpora_argument = click.argument(
    "corpora", metavar="CORPUS...", shell_complete=complete_file, nargs=-1, required=True
)
base_option = click.option(
    "--base",
    default=DEFAULT_ENCODER,
    show_default=True,
    metavar="MODEL",
    shell_complete=complete_file,
    help="The base model: minilm, or a Sentence-Transformers model by folder or hub name.",
)
tests_option = click.option(
    "--test",
    "tests",
    multiple=True,
    metavar="NAME|FILE",
    shell_complete=complete_file,
    help="Test set for the finished model, such as stsbenchmark; may be repeated.",
)


def _parsed(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> dict[str, Any]:
    """The values of ``NAME=VALUE`` by name."""
    del context, option
    found: dict[str, Any] = {}
    for text in given:
        name, _, value = text.partition("=")
        if name not in SETTABLE:
            close = get_close_matches(name, SETTABLE, 1) or SETTABLE
            raise click.BadParameter(f"there is no '{name}'; use {', '.join(close)}")
        number = float if "float" in SETTABLE[name] else int
        try:
            found[name] = number(value)
        except ValueError:
            raise click.BadParameter(f"'{value}' is no {number.__name__} for {name}") from None
    return found


def run_options(
    output: str, epochs: str, learning_rate: str, batch_size: int, *, by_stage: bool = False
) -> Decorator:
    """The options of all training commands.

    Args:
        output: the default folder, for the help, like the following defaults.
        epochs: the default duration.
        learning_rate: the default rate.
        batch_size: the default number of examples.
        by_stage: whether epochs and learning rates can be given for each set.
    """
    once = "; give once, or once per --data" if by_stage else ""
    return together(
        click.option(
            "--output",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help=f"Output folder of the model.  [default: {output}]",
        ),
        click.option(
            "--epochs",
            type=float,
            multiple=by_stage,
            metavar="N",
            help=f"Passes over the data{once}.  [default: {epochs}]",
        ),
        click.option(
            "--learning-rate",
            type=float,
            multiple=by_stage,
            metavar="R",
            help=f"Peak rate{once}.  [default: {learning_rate}]",
        ),
        click.option(
            "--batch-size",
            type=int,
            metavar="N",
            help=f"Examples per step.  [default: {batch_size}]",
        ),
        click.option(
            "--set",
            "others",
            multiple=True,
            callback=_parsed,
            metavar="NAME=VALUE",
            help=f"Another setting; may be repeated. NAME is {', '.join(SETTABLE)}.",
        ),
    )


#: The options of commands that train on labelled data.
pairs_options = together(
    base_option,
    click.option(
        "--data",
        multiple=True,
        metavar="NAME|FILE",
        shell_complete=complete_file,
        help="Training set; repeat it to train on several sets in turn.",
    ),
    click.option(
        "--dev",
        "development",
        metavar="NAME|FILE|none",
        shell_complete=complete_file,
        help="Development set, which selects the best checkpoint.  [default: the published one for "
        "the data, else a held-out tenth of 100 or more examples]",
    ),
    tests_option,
    run_options(
        "models/NAME-OF-THE-DATA-KIND",
        "4 for scored pairs, else 1",
        f"{Recipe.learning_rate:g}",
        Recipe.batch_size,
        by_stage=True,
    ),
)


def corpus_options(output: str, epochs: str, learning_rate: str, batch_size: int) -> Decorator:
    """The options of commands that train on a corpus; the arguments are as in `run_options`."""
    return together(
        click.option(
            "--text-column",
            "text_columns",
            metavar="C",
            multiple=True,
            help="The column of texts in CORPUS; several are joined.",
        ),
        run_options(output, epochs, learning_rate, batch_size),
    )


def train_on_corpus(
    make: Callable[[Iterable[Document], str], Task],
    corpora: Sequence[str],
    default_name: str,
    *,
    base: str | None,
    output: Path | None,
    text_columns: Sequence[str],
    others: dict[str, Any],
    tests: Sequence[str] = (),
    **given: Any,
) -> Trained:
    """Train on files and folders, or on the directory of one index, and print the results.

    Args:
        make: returns the task, from the documents and the name of the corpus.
        corpora: the corpus.
        default_name: name of the model in `models`, with ``{}`` for the name of the corpus.
        base: as in `Settings`, like `tests`.
        output: the folder of the model; None takes the default name.
        text_columns: the columns of texts; none to guess.
        others: fields of `Recipe`, from `--set`.
        tests: test sets.
        given: further fields of `Recipe`; None takes the default of the task.
    """
    with IndexingProgress("examples", "reading the corpus") as progress:
        documents, name = _read(corpora, text_columns, progress)
        task = make(documents, name)
        recipe = task.recipe_for(base).changed(**given, **others)
        folder = output or MODELS / default_name.format(name)
        settings = Settings(base, folder, corpora, [recipe], tests=tests)
        return _train_and_print(task, settings, progress)


def _read(
    corpora: Sequence[str], text_columns: Sequence[str], progress: IndexingProgress
) -> tuple[Iterable[Document], str]:
    """The documents of a corpus or an index, and its name."""
    directory = Path(corpora[0])
    if len(corpora) == 1 and (directory / "index.sqlite").is_file():
        with Index.open(directory) as index:
            return list(index), directory.resolve().name
    corpus = Corpus(
        corpora,
        text_columns=text_columns,
        notify=lambda message: progress.note(visible(message)),
        on_bad_row=BadRows(progress, skip=True),
    )
    return corpus, corpus.name


def train_on_pairs(
    task: Task,
    data: Sequence[str],
    *,
    output: Path | None,
    epochs: Sequence[float],
    learning_rate: Sequence[float],
    batch_size: int | None,
    others: dict[str, Any],
    **choices: Any,
) -> None:
    """Train on sets of examples, and print the results.

    Args:
        task: what is trained.
        data: training sets, by name or file.
        output: the folder of the model; None takes the name of the first set.
        epochs: one for all sets, or one for each; none takes the default.
        learning_rate: the same.
        batch_size: None takes the default.
        others: fields of `Recipe`, from `--set`.
        choices: further fields of `Settings`.

    Raises:
        ArgumentError: there is no training set.
    """
    if not data:
        raise ArgumentError("missing option --data")
    recipe = task.recipe.changed(batch_size=batch_size, **others)
    recipes = [
        recipe.changed(epochs=times, learning_rate=rate)
        for times, rate in zip(
            per_stage(epochs or (None,), len(data), "--epochs"),
            per_stage(learning_rate or (None,), len(data), "--learning-rate"),
            strict=True,
        )
    ]
    name = re.sub(r"[^\w.-]+", "-", Path(data[0]).stem).strip(".-")
    folder = output or MODELS / f"{name}-{task.name}"
    settings = Settings(output=folder, data=data, recipes=recipes, **choices)
    with IndexingProgress("examples", "loading the model") as progress:
        _train_and_print(task, settings, progress)


def _train_and_print(task: Task, settings: Settings, progress: IndexingProgress) -> Trained:
    """Train; print the scores of the model, its folder and the verdict on it."""
    try:
        trained = train(
            task, settings, lambda message: progress.note(visible(message)), progress.update
        )
    except TrainingStoppedError as stopped:
        progress.note(visible(with_code(stopped)))
        raise SystemExit(INTERRUPTED_STATUS) from None
    progress.stop()
    for test in trained.tests:
        click.echo(visible(str(test)))
    if trained.is_kept:
        click.echo(visible(f"{trained.folder}: the model and its card"))
    if trained.verdict:
        click.echo(visible(trained.verdict))
    return trained
