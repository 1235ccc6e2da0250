"""``semsearch train siamese``: labelled pairs or triplets in, a bi-encoder out."""

from __future__ import annotations

from typing import Any

import click

from semsearch.cli.training_options import pairs_options, train_on_pairs
from semsearch.training import Loss, Siamese
from semsearch.training.stages import per_stage


@click.command("siamese")
@click.option(
    "--loss",
    "losses",
    multiple=True,
    type=click.Choice([loss.value for loss in Loss]),
    help="Give once, or once per --data.  [default: by the columns of the data: cosine for scores, "
    "contrastive for yes/no labels, softmax for others, else ranking]",
)
@pairs_options
def command(
    losses: tuple[str, ...],
    data: tuple[str, ...],
    **choices: Any,
) -> None:
    """Train a bi-encoder, for --encoder.

    \b
    --loss       learns from                                       columns of a file
    cosine       pairs with gold scores, by the cosine             sentence1, sentence2, score
    cosent       pairs with gold scores, by their order            sentence1, sentence2, score
    contrastive  pairs labelled yes or no, by the cosine           sentence1, sentence2, label
    softmax      pairs with labels, by u, v and |u - v|            sentence1, sentence2, label
    ranking      positive pairs with in-batch negatives            anchor, positive [, negative]
    triplet      positive nearer than negative by a margin         anchor, positive, negative

    FILE is CSV, TSV, JSON lines, JSON or Parquet. NAME is a published set from
    `semsearch datasets fetch`, with its split: stsbenchmark:train. Pairs that are also in the
    development or test sets, in either order, are reported and left out. The checkpoint that scores
    best on the development set is kept. The gain over MODEL is shown with its 95 % interval; the
    softmax loss trains a classifier, whose accuracy says little about the encoder.

    DIR is written when the model is finished; until then checkpoints are in DIR.training. After
    Ctrl-C or a kill, the same command continues from them.

    If MODEL has prompts for queries and documents, they are used neither in training nor for its
    scores; `semsearch eval` and indexes use them.

    \b
    semsearch train siamese --data pairs.csv --output my-encoder
    semsearch train siamese --data stsbenchmark:train --loss cosine --test stsbenchmark \\
        --output my-encoder
    semsearch train siamese --base bert-base-uncased --data nli.csv --loss softmax \\
        --data stsbenchmark:train --loss cosine --output sbert
    """
    named = per_stage(losses or (None,), len(data), "--loss")
    task = Siamese([Loss(loss) if loss else None for loss in named])
    train_on_pairs(task, data, **choices)
