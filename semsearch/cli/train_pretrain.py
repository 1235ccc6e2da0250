"""``semsearch train pretrain``: a corpus into a BERT."""

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
    opened_corpus,
    output_option,
    output_options,
)
from semsearch.errors import CombinationError
from semsearch.runs import Workspace

DEFAULT_STEPS = 10_000
SIZES = ("tiny", "mini", "small", "base")


@click.command("pretrain", cls=Command, page="explanations/pre-training.md")
@click.argument("corpora", metavar="CORPUS...", nargs=-1, required=True)
@click.option(
    "--size",
    type=click.Choice(SIZES),
    help="Layers and width: 2 x 128, 4 x 256, 4 x 512 or 12 x 768.  [default: small]",
)
@click.option("--from", "base", metavar="MODEL", help="Go on from a BERT, by folder or hub name.")
@click.option("--vocabulary", type=int, metavar="N", help="Word pieces to learn.  [default: 30522]")
@click.option("--cased", is_flag=True, help="Keep capitals and accents.")
@click.option(
    "--steps",
    type=int,
    metavar="N",
    help="How long to train; 0 writes random weights, which `semsearch train contrast` can begin "
    f"with.  [default: {DEFAULT_STEPS}]",
)
@click.option("--minutes", type=float, metavar="M", help="Or for so many minutes of steps.")
@click.option(
    "--max-tokens",
    type=int,
    default=128,
    show_default=True,
    metavar="N",
    help="Of a pair of spans, and later of a text; up to 512.",
)
@output_option("models/NAME-OF-THE-CORPUS-SIZE")
@output_options
@corpus_options
@click.option("--title-column", metavar="C", help="The column that holds the titles.")
def command(
    corpora: tuple[str, ...],
    size: str | None,
    base: str | None,
    vocabulary: int | None,
    cased: bool,
    steps: int | None,
    minutes: float | None,
    max_tokens: int,
    path: Path | None,
    learning_rate: float | None,
    batch: int | None,
    seed: int,
    overwrite: bool,
    resume: bool,
    **reading: Any,
) -> None:
    """Pre-train a BERT on a corpus: masked words and next sentences.

    CORPUS is read as `semsearch index` reads it; documents of one sentence are of no use here. A
    twentieth of the documents is held out, and the losses on these are told on the way. The
    result is a plain BERT, for fine-tuning: its vectors are no good ones for search yet.

    \b
    semsearch train pretrain corpus.csv --size tiny --minutes 10
    semsearch train pretrain films.json --text-column extract --steps 20000 --output models/films
    semsearch train pretrain notes/ --from ./bert-base-uncased --steps 2000
    """
    if base and (size or vocabulary or cased or steps == 0):
        raise CombinationError(
            "--size, --vocabulary, --cased, --steps 0 are of a BERT from scratch"
        )
    from semsearch.unsupervised.bert import BertSize
    from semsearch.unsupervised.loop import Length
    from semsearch.unsupervised.pretraining import PretrainingSettings, pretrain

    if steps is None and minutes is None:
        steps = DEFAULT_STEPS
    given: dict[str, Any] = {
        "vocabulary": vocabulary,
        "batch": batch,
        "learning_rate": learning_rate,
    }
    settings = PretrainingSettings(
        Length(steps, minutes),
        BertSize[(size or "small").upper()],
        base,
        cased=cased,
        max_tokens=max_tokens,
        seed=seed,
        **{name: value for name, value in given.items() if value is not None},
    )
    with IndexingProgress("steps", "reading the corpus") as progress:
        corpus = opened_corpus(corpora, progress, **reading)
        name = f"{corpus.name}-{'continued' if base else size or 'small'}"
        workspace = Workspace(path or MODELS / name, overwrite=overwrite, resume=resume)
        with interruptible(progress):
            losses = pretrain(
                corpus,
                workspace,
                settings,
                notify=lambda message: progress.note(visible(message)),
                on_progress=progress.update,
            )
    told = f"held out, {losses}" if losses else "random weights, to be trained"
    click.echo(visible(f"{workspace.output}: {told}"))
