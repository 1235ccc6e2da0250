"""``semsearch train cross-encoder``: pairs, or queries with judgements, in; a reranker out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import directory_option, existing_index, is_given, judged_option
from semsearch.cli.training_options import pairs_options, train_on_pairs
from semsearch.errors import ArgumentError
from semsearch.evaluation.datasets import read_questions
from semsearch.index import Index
from semsearch.training import CrossEncoding, Reranking


@click.command("cross-encoder")
@pairs_options
@directory_option("Train on judged queries of this index instead of --data.")
@judged_option("With --index: ")
@click.option(
    "--negatives",
    default=Reranking.negatives,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="With --index: hard negatives per query, from hits that are not judged relevant.",
)
def command(
    data: tuple[str, ...],
    directory: Path | None,
    queries: Path | None,
    qrels: Path | None,
    negatives: int,
    **choices: Any,
) -> None:
    """Train a cross-encoder, for --rerank and --system ENCODER+cross-encoder:DIR.

    With --data, it is trained on pairs with gold scores (columns sentence1, sentence2, score) or
    labels for yes and no (sentence1, sentence2, label). Files, checks and resuming are as in
    `semsearch train siamese`.

    With --index, it is trained on queries and the documents of an index that are relevant to them,
    as for `semsearch eval ir`. Other passages that the index finds for a query are the negatives.
    On a held-out fifth of the queries, the command measures nDCG@10 before and after reranking, and
    chooses the weight of the first-stage score, which is stored with the model.

    \b
    semsearch train cross-encoder --data stsbenchmark:train --test stsbenchmark --output my-reranker
    semsearch train cross-encoder --index indexes/papers --queries questions.csv \\
        --qrels answers.csv --output my-reranker
    """
    if directory is None:
        if queries is not None or qrels is not None:
            raise ArgumentError("--queries and --qrels need --index DIR")
        if is_given("negatives"):
            raise ArgumentError("--negatives needs --index DIR")
        train_on_pairs(CrossEncoding(), data, **choices)
        return
    if queries is None or qrels is None:
        raise ArgumentError("--index needs --queries FILE and --qrels FILE")
    if data or choices["development"] or choices["tests"]:
        raise ArgumentError("--data, --dev and --test do not apply to --index")
    with Index.open(existing_index(directory)) as index:
        judged = read_questions(queries, qrels, index.__contains__)
        train_on_pairs(Reranking(index, judged, negatives), [judged.name], **choices)
