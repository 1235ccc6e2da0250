"""``semsearch train distill``: a faster student of an encoder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import complete_file
from semsearch.cli.render import visible
from semsearch.cli.training_options import corpora_argument, corpus_options, train_on_corpus
from semsearch.errors import quoted
from semsearch.training import Distillation


@click.command("distill")
@click.argument("spec", metavar="MODEL", shell_complete=complete_file)
@corpora_argument
@corpus_options("models/MODEL-static", "1", "3e-3", 64)
def command(spec: str, corpora: tuple[str, ...], **choices: Any) -> None:
    """Distil an encoder into averaged word vectors, which are much faster.

    MODEL is minilm, or a Sentence-Transformers model by name or folder. The student averages the
    vectors that the teacher gives to single words, and is trained on its vectors of the documents
    and sentences of CORPUS. The STS Benchmark scores of teacher and student are printed, if it is
    on this machine.

    \b
    semsearch train distill minilm corpus.csv --output models/fast
    semsearch index corpus.csv --encoder models/fast
    """
    name = re.sub(r"[^\w.-]+", "-", Path(spec).name).strip(".-") or "model"
    trained = train_on_corpus(Distillation, corpora, f"{name}-static", base=spec, **choices)
    systems = f"--system {quoted(spec)} --system {quoted(str(trained.folder))}"
    comparison = f"semsearch eval sts --data stsbenchmark {systems} --report DIR"
    click.echo(visible(f"to compare speed and quality: {comparison}"), err=True)
