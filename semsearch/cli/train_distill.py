"""``semsearch train distill``: a faster student of an encoder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import complete_file
from semsearch.cli.render import visible
from semsearch.cli.training_options import corpora_argument, corpus_options, train_on_corpus
from semsearch.errors import ArgumentError, quoted
from semsearch.training import Distillation


@click.command("distill")
@click.argument("spec", metavar="MODEL", shell_complete=complete_file)
@corpora_argument
@click.option("--static", is_flag=True, help="Average word vectors, without any layers.")
@click.option("--layers", type=int, metavar="N", help="Keep N layers.")
@corpus_options("models/MODEL-static or -N-layers", "1", "3e-3 for --static, else 1e-4", 64)
def command(
    spec: str,
    corpora: tuple[str, ...],
    static: bool,
    layers: int | None,
    **choices: Any,
) -> None:
    """Distil an encoder into a faster student.

    MODEL is minilm, or a Sentence-Transformers model by name or folder. A static student averages
    the vectors that the teacher gives to single words; with --layers, the student is a copy with
    fewer layers. Both are trained on the teacher's vectors of the documents and sentences of
    CORPUS. The STS Benchmark scores of teacher and student are printed, if it is on this machine.

    \b
    semsearch train distill minilm corpus.csv --static --output models/fast
    semsearch train distill minilm corpus.csv --layers 3
    """
    if static == (layers is not None):
        raise ArgumentError("choose a student: --static or --layers N")
    kind = "static" if static else f"{layers}-layers"
    name = re.sub(r"[^\w.-]+", "-", Path(spec).name).strip(".-") or "model"
    trained = train_on_corpus(
        lambda documents, title: Distillation(documents, title, layers),
        corpora,
        f"{name}-{kind}",
        base=spec,
        **choices,
    )
    systems = f"--system {quoted(spec)} --system {quoted(str(trained.folder))}"
    comparison = f"semsearch eval sts --data stsbenchmark {systems} --report DIR"
    click.echo(visible(f"to compare speed and quality: {comparison}"), err=True)
