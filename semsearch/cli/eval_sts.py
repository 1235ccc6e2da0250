"""``semsearch eval sts``: semantic textual similarity."""

from __future__ import annotations

from pathlib import Path

import click

from semsearch.cli.options import (
    eval_precision_option,
    format_option,
    report_option,
    systems_option,
)
from semsearch.cli.progress import EvaluationProgress, working
from semsearch.cli.render import note
from semsearch.cli.render_evaluation import print_lines, print_report, print_tables
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, DatasetNotFoundError
from semsearch.evaluation import CosineScorer, evaluate_sts, load_pair_scorer
from semsearch.evaluation.datasets import PairColumns, StsSet, load_sts_set, sts_names
from semsearch.evaluation.report import check_report


@click.command("sts")
@click.option(
    "--data",
    metavar="NAME|PATH",
    multiple=True,
    help="stsbenchmark, sts12 … sts16, sick, stsb-multi:LANGUAGE (en-pt: English against "
    "Portuguese), or a CSV or TSV of pairs with gold scores.  [default: all English sets that are "
    "downloaded]",
)
@click.option(
    "--split",
    metavar="NAME",
    default="test",
    show_default=True,
    help="The split; for sick, also: all.",
)
@click.option(
    "--left-column",
    metavar="C",
    help="The column of the first text of a file, by name or position.",
)
@click.option("--right-column", metavar="C", help="The column of the second text.")
@click.option("--score-column", metavar="C", help="The column of the gold score.")
@systems_option(DEFAULT_ENCODER, "An encoder, or cross-encoder:MODEL")
@eval_precision_option
@format_option("table", "jsonl", description="A table, or one line per result.")
@report_option
def command(
    data: tuple[str, ...],
    split: str,
    left_column: str | None,
    right_column: str | None,
    score_column: str | None,
    systems: tuple[str, ...],
    precision: str,
    format_name: str,
    report: Path | None,
) -> None:
    """Measure how well similarity scores of sentence pairs correlate with human scores.

    Reports Spearman's correlation of the cosine with the gold scores, times 100, with 95 %
    bootstrap intervals; for two or more systems, also paired differences, whose p values are not
    adjusted for several comparisons. Pearson's correlation is reported without these. The yearly
    sets are scored in both usual ways: all pairs together (as in the SBERT paper), and the mean
    over subsets.

    If a model has a prompt for documents, both sentences are encoded with it, as in an index. Other
    tools may use no prompt, as `semsearch train siamese` does for its own scores.

    \b
    semsearch eval sts --data stsbenchmark
    semsearch eval sts --data sts12 --data sick --system minilm --system bert-base-uncased@mean
    semsearch eval sts --data stsb-multi:pt --data stsb-multi:en-pt
    semsearch eval sts --data my-pairs.csv --format jsonl
    semsearch eval sts --data stsbenchmark --system minilm --system hashing --report report
    """
    sets = _sets(data, split, PairColumns(left_column, right_column, score_column))
    if report is not None:
        check_report(report)
    with working("loading"):
        scorers = [load_pair_scorer(spec, precision) for spec in dict.fromkeys(systems)]
    evaluations = []
    progress = EvaluationProgress([one.name for one in sets], [one.spec for one in scorers])
    for dataset in sets:
        with progress:
            evaluation = evaluate_sts(dataset, scorers, on_progress=progress.show)
        evaluations.append(evaluation)
        if format_name == "jsonl":
            print_lines(evaluation)
    if format_name == "table":
        print_tables(evaluations)
    encoders = {one.spec: one.encoder for one in scorers if isinstance(one, CosineScorer)}
    print_report(report, evaluations, encoders)


def _sets(data: tuple[str, ...], split: str, columns: PairColumns) -> list[StsSet]:
    """The named sets; without names, all known sets that are downloaded."""
    if data:
        return [load_sts_set(name, split, columns, note) for name in data]
    if any(columns) or split != "test":
        raise ArgumentError("columns and --split need --data")
    sets = []
    for name in sts_names():
        try:
            sets.append(load_sts_set(name, split))
        except DatasetNotFoundError as error:
            note(f"left out: {error}")
    if not sets:
        raise DatasetNotFoundError("none of the known sets is downloaded; name one with --data")
    return sets
