"""``semsearch train adapt``: an encoder that knows the corpus, if that helps."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.render import visible
from semsearch.cli.training_options import (
    corpus_training_options,
    train_on_corpus,
)
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.training import Adaptation


@click.command("adapt", cls=Command)
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@click.option(
    "--encoder",
    "spec",
    metavar="SPEC",
    default=DEFAULT_ENCODER,
    show_default=True,
    help="What to adapt: minilm, or a Sentence-Transformers model by name or folder.",
)
@click.option("--keep-anyway", is_flag=True, help="Write the model even if it did not help.")
@corpus_training_options("models/NAME-OF-THE-CORPUS-adapted")
def command(corpora: tuple[str, ...], spec: str, keep_anyway: bool, **choices: Any) -> None:
    """Fit an encoder to a corpus, without labels.

    CORPUS is read as `semsearch index` reads it. Titles that the text does not repeat, and
    sentences taken out of their context, are the questions that it trains on. A tenth of the
    documents is held out; the model is written only if questions of these find their passages
    better than before, beyond chance. If not, the exit status is 1.

    \b
    semsearch train adapt corpus.csv
    semsearch train adapt films.json --text-column extract --minutes 30 --output models/films
    semsearch index films.json --text-column extract --encoder models/films
    """
    trained, task = train_on_corpus(
        lambda corpus, name: Adaptation(corpus or (), name, keep_anyway=keep_anyway),
        corpora,
        "{}-adapted",
        base=spec,
        **choices,
    )
    assert isinstance(task, Adaptation)  # noqa: S101 - for mypy
    gain = task.gain
    if gain.is_certain:
        click.echo(visible(f"it helped: {gain}"))
    elif trained.is_kept:
        click.echo(visible(f"it did not help, and is kept as --keep-anyway wants: {gain}"))
    else:
        click.echo(visible(f"it did not help: {gain}; nothing was written, keep using {spec}"))
        click.get_current_context().exit(1)
