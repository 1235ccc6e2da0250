"""``semsearch train adapt``: an encoder that knows the corpus, if that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.corpus_options import corpus_options
from semsearch.cli.interruption import interruptible
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import visible
from semsearch.cli.unsupervised_options import (
    MODELS,
    length_options,
    opened_corpus,
    output_option,
    output_options,
)
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.runs import Workspace


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
@length_options
@click.option("--keep-anyway", is_flag=True, help="Write the model even if it did not help.")
@output_option("models/NAME-OF-THE-CORPUS-adapted")
@output_options
@corpus_options
@click.option("--title-column", metavar="C", help="The column that holds the titles.")
def command(
    corpora: tuple[str, ...],
    spec: str,
    steps: int | None,
    minutes: float | None,
    keep_anyway: bool,
    path: Path | None,
    learning_rate: float | None,
    batch: int | None,
    seed: int,
    overwrite: bool,
    resume: bool,
    **reading: Any,
) -> None:
    """Fit an encoder to a corpus, without labels.

    CORPUS is read as `semsearch index` reads it. Titles that the text does not repeat, and
    sentences taken out of their context, are the questions that it trains on. A tenth of the
    documents is held out; the model is written only if questions of these find their passages
    better than before, beyond what chance explains. If not, that is said, and the exit status is 1.

    \b
    semsearch train adapt corpus.csv
    semsearch train adapt films.json --text-column extract --minutes 30 --output models/films
    semsearch index films.json --text-column extract --encoder models/films
    """
    from semsearch.unsupervised.adaptation import AdaptationSettings, adapt
    from semsearch.unsupervised.loop import Length

    given: dict[str, Any] = {"batch": batch, "learning_rate": learning_rate}
    settings = AdaptationSettings(
        spec,
        None if steps is None and minutes is None else Length(steps, minutes),
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    with IndexingProgress("steps", "reading the corpus") as progress:
        corpus = opened_corpus(corpora, progress, **reading)
        workspace = Workspace(
            path or MODELS / f"{corpus.name}-adapted", overwrite=overwrite, resume=resume
        )
        with interruptible(progress):
            result = adapt(
                corpus,
                workspace,
                settings,
                keep_anyway=keep_anyway,
                notify=lambda message: progress.note(visible(message)),
                on_progress=progress.update,
            )
    if result.sts:
        click.echo("STS Benchmark {1:.2f} after {0:.2f}".format(*result.sts), err=True)
    if result.is_kept:
        verdict = "it helped" if result.gain.is_certain else "it did not help, and is kept as asked"
        click.echo(visible(f"{workspace.output}: {verdict}: {result.gain}"))
        return
    click.echo(visible(f"it did not help: {result.gain}; nothing was written, stay with {spec}"))
    click.get_current_context().exit(1)
