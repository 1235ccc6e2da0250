"""What the subcommands of ``semsearch train`` that need no labels share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from semsearch.cli.interruption import run_options
from semsearch.cli.options import together
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.corpus import Corpus, CorpusFormat
from semsearch.errors import BadRowError, refuse

#: Where models are made unless `--output` says otherwise.
MODELS = Path("models")

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: How long to train a model that is taken through a corpus.
length_options = together(
    click.option(
        "--steps",
        type=click.IntRange(1),
        metavar="N",
        help="How long to train.  [default: once through the corpus]",
    ),
    click.option("--minutes", type=float, metavar="M", help="Or for so many minutes of steps."),
)

#: How to descend, and what may be done to what is there.
output_options = together(
    click.option("--learning-rate", type=float, metavar="R", help="At its highest."),
    click.option("--batch-size", "batch", type=int, metavar="N", help="Texts or pairs in a step."),
    click.option("--seed", type=int, default=0, metavar="N", help="Of all that is drawn."),
    run_options,
)


def output_option(default: str) -> Callable[[_Command], _Command]:
    """``--output DIR``, which a command takes as `path`; `default` is where the model goes else."""
    place = click.Path(path_type=Path)
    description = f"The new model's folder.  [default: {default}]"
    return click.option("--output", "path", type=place, metavar="DIR", help=description)


def opened_corpus(
    paths: tuple[str, ...],
    progress: IndexingProgress,
    *,
    input_format: str | None,
    skip_bad_rows: bool,
    **columns: Any,
) -> Corpus:
    """The corpus that is meant; what is to be said of it goes to `progress`."""

    def skip(error: BadRowError) -> None:
        progress.note(visible(f"skipped {error}"))

    return Corpus(
        list(paths),
        format=CorpusFormat(input_format) if input_format else None,
        notify=lambda message: progress.note(visible(message)),
        on_bad_row=skip if skip_bad_rows else refuse,
        **columns,
    )
