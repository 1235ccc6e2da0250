"""What the subcommands of ``semsearch train`` share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import INTERRUPTED_STATUS
from semsearch.cli.corpus_options import BadRows, text_column_option
from semsearch.cli.options import FILE, NAME_OR_FILE, Decorator, repeated_option, together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import say
from semsearch.corpus import Corpus
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, TrainingStoppedError, with_code
from semsearch.index import Index
from semsearch.records import Document
from semsearch.training import Recipe, Settings, Task, Trained, train
from semsearch.training.stages import per_stage

#: The default folder of models.
MODELS = Path("models")
#: The settings without options of their own, which `--set` sets, with their types.
SETTABLE = {
    field.name: float if "float" in str(field.type) else int
    for field in fields(Recipe)
    if field.name not in ("epochs", "learning_rate", "batch_size")
}


class Setting(click.ParamType[tuple[str, Any]]):
    """``NAME=VALUE``, a field of `Recipe`."""

    name = "NAME=VALUE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        """Parse the name and the value."""
        name, _, text = value.partition("=")
        if name not in SETTABLE:
            self.fail(f"there is no '{name}'; use {', '.join(SETTABLE)}", param, ctx)
        try:
            return name, SETTABLE[name](text)
        except ValueError:
            self.fail(f"'{text}' is no {SETTABLE[name].__name__} for {name}", param, ctx)


tests_option = repeated_option(
    "--test", "tests", "NAME|FILE", "Test set for the finished model, such as stsbenchmark."
)


def base_option(default: str | None = DEFAULT_ENCODER, *, required: bool = False) -> Decorator:
    """``--base MODEL``."""
    return click.option(
        "--base",
        default=default,
        required=required,
        show_default=True,
        metavar="MODEL",
        type=NAME_OR_FILE,
        help="The base model: minilm, or a Sentence-Transformers model by folder or hub name.",
    )


def run_options(
    output: str, epochs: str, learning_rate: str, batch_size: int, *, by_stage: bool = False
) -> Decorator:
    """The options of all training commands, with the defaults that their help shows."""
    number = partial(click.option, type=float, multiple=by_stage, metavar="N")
    once = "; give once, or once per --data" if by_stage else ""
    return together(
        click.option(
            "--output",
            type=FILE,
            metavar="DIR",
            help=f"Output folder of the model.  [default: {MODELS}/{output}]",
        ),
        number("--epochs", help=f"Passes over the data{once}.  [default: {epochs}]"),
        number("--learning-rate", help=f"Peak rate{once}.  [default: {learning_rate}]"),
        click.option(
            "--batch-size", type=int, metavar="N", help=f"Per step.  [default: {batch_size}]"
        ),
        click.option(
            "--set",
            "others",
            multiple=True,
            type=Setting(),
            help=f"Another setting; may be repeated. NAME is {', '.join(SETTABLE)}.",
        ),
    )


def corpus_options(output: str, epochs: str, learning_rate: str, batch_size: int) -> Decorator:
    """The options of commands that train on a corpus; the arguments are as in `run_options`."""
    return together(text_column_option, run_options(output, epochs, learning_rate, batch_size))


#: The options of commands that train on labelled data.
pairs_options = together(
    base_option(),
    repeated_option(
        "--data", "data", "NAME|FILE", "Training set; repeat it to train on several in turn."
    ),
    click.option(
        "--dev",
        "development",
        metavar="NAME|FILE|none",
        type=NAME_OR_FILE,
        help="Development set, which selects the best checkpoint.  [default: the published one for "
        "the data, else a held-out tenth of 100 or more examples]",
    ),
    tests_option,
    run_options(
        "NAME-OF-THE-DATA-KIND",
        "4 for scored pairs, else 1",
        f"{Recipe.learning_rate:g}",
        Recipe.batch_size,
        by_stage=True,
    ),
)


def train_on_corpus(
    make: Callable[[Iterable[Document], str], Task],
    corpora: Sequence[str],
    default_name: str,
    *,
    base: str | None,
    output: Path | None,
    text_columns: Sequence[str],
    others: Sequence[tuple[str, Any]],
    tests: Sequence[str] = (),
    **given: Any,
) -> Trained:
    """Train on files and folders, or on the directory of one index, and print the results.

    `make` returns the task, from the documents and the name of the corpus, which `default_name` has
    in place of ``{}``; `given` and `others` (from `--set`) are fields of `Recipe`.
    """
    with IndexingProgress("examples", "reading the corpus") as progress:
        documents: Iterable[Document]
        if len(corpora) == 1 and Path(corpora[0], "index.sqlite").is_file():
            with Index.open(corpora[0]) as index:
                documents, name = list(index), Path(corpora[0]).resolve().name
        else:
            corpus = Corpus(
                corpora,
                text_columns=text_columns,
                notify=progress.note,
                on_bad_row=BadRows(progress.note),
            )
            documents, name = corpus, corpus.name
        task = make(documents, name)
        recipe = task.recipe_for(base).changed(**given, **dict(others))
        folder = output or MODELS / default_name.format(name)
        settings = Settings(base, folder, corpora, [recipe], tests=tests)
        return _train_and_print(task, settings, progress)


def train_on_pairs(
    task: Task,
    data: Sequence[str],
    *,
    output: Path | None,
    epochs: Sequence[float],
    learning_rate: Sequence[float],
    batch_size: int | None,
    others: Sequence[tuple[str, Any]],
    **choices: Any,
) -> None:
    """Train on sets of examples, one stage each, and print the results.

    `epochs` and `learning_rate` have one value for all stages, or one for each.

    Raises:
        ArgumentError: there is no training set.
    """
    if not data:
        raise ArgumentError("missing option --data")
    recipe = task.recipe.changed(batch_size=batch_size, **dict(others))
    times = per_stage(epochs or (None,), len(data), "--epochs")
    rates = per_stage(learning_rate or (None,), len(data), "--learning-rate")
    recipes = [
        recipe.changed(epochs=time, learning_rate=rate)
        for time, rate in zip(times, rates, strict=True)
    ]
    folder = output or MODELS / f"{file_name(data[0])}-{task.name}"
    settings = Settings(output=folder, data=data, recipes=recipes, **choices)
    with IndexingProgress("examples", "loading the model") as progress:
        _train_and_print(task, settings, progress)


def file_name(spec: str) -> str:
    """A set or model as a part of a file name."""
    return re.sub(r"[^\w.-]+", "-", Path(spec).stem).strip(".-") or "model"


def _train_and_print(task: Task, settings: Settings, progress: IndexingProgress) -> Trained:
    """Train; print the scores of the model, its folder and the verdict on it."""
    try:
        trained = train(task, settings, progress.note, progress.update)
    except TrainingStoppedError as stopped:
        progress.note(with_code(stopped))
        raise SystemExit(INTERRUPTED_STATUS) from None
    progress.stop()
    for test in trained.tests:
        say(str(test))
    if trained.is_kept:
        say(f"{trained.folder}: the model and its card")
    if trained.verdict:
        say(trained.verdict)
    return trained
