"""``semsearch train distil``: a faster student of an encoder."""

from __future__ import annotations

import re
import shlex
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
from semsearch.errors import CombinationError
from semsearch.runs import Workspace


@click.command("distil", cls=Command)
@click.argument("spec", metavar="MODEL")
@click.argument("corpora", metavar="[CORPUS]...", nargs=-1)
@click.option("--static", is_flag=True, help="Averaged word vectors: no layers at all.")
@click.option("--layers", type=int, metavar="N", help="Keep so many layers; needs a CORPUS.")
@click.option(
    "--dimension",
    type=int,
    metavar="D",
    help="Of a static student.  [default: 256; with a CORPUS, the teacher's]",
)
@length_options
@output_option("models/MODEL-static or models/MODEL-N-layers")
@output_options
@corpus_options
def command(
    spec: str,
    corpora: tuple[str, ...],
    static: bool,
    layers: int | None,
    dimension: int | None,
    steps: int | None,
    minutes: float | None,
    path: Path | None,
    learning_rate: float | None,
    batch: int | None,
    seed: int,
    overwrite: bool,
    resume: bool,
    **reading: Any,
) -> None:
    """Make a faster student of an encoder.

    MODEL is minilm, or a Sentence-Transformers model by name or folder. A static student averages
    the vectors that the teacher gives to single words; one of fewer layers is a copy without the
    others. Both learn the teacher's vectors of a CORPUS, its documents and their sentences; the
    static one does without, too. Speed and STS Benchmark (where SEMSEARCH_DATA has it) are told
    of both.

    \b
    semsearch train distil minilm --static
    semsearch train distil minilm corpus.csv --static --output models/fast
    semsearch train distil minilm corpus.csv --layers 3
    """
    if static == (layers is not None):
        raise CombinationError("choose a student: --static or --layers N")
    from semsearch.unsupervised.distillation import DistillationSettings, distil
    from semsearch.unsupervised.loop import Length

    given: dict[str, Any] = {"batch": batch}
    settings = DistillationSettings(
        spec,
        layers,
        dimension,
        None if steps is None and minutes is None else Length(steps, minutes),
        learning_rate=learning_rate,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    kind = "static" if static else f"{layers}-layers"
    name = re.sub(r"[^\w.-]+", "-", Path(spec).name).strip(".-") or "model"
    workspace = Workspace(path or MODELS / f"{name}-{kind}", overwrite=overwrite, resume=resume)
    with IndexingProgress("steps", "reading the corpus") as progress:
        corpus = opened_corpus(corpora, progress, **reading) if corpora else None
        with interruptible(progress):
            teacher, student = distil(
                corpus,
                workspace,
                settings,
                notify=lambda message: progress.note(visible(message)),
                on_progress=progress.update,
            )
    click.echo(visible(f"{spec}: {teacher}"))
    click.echo(visible(f"{workspace.output}: {student}"))
    systems = f"--system {shlex.quote(spec)} --system {shlex.quote(str(workspace.output))}"
    hint = f"to see speed against quality: semsearch eval sts stsbenchmark {systems} --report DIR"
    click.echo(visible(hint), err=True)
