"""``semsearch eval sts``: semantic textual similarity."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.language_fit import warn_of_unknown_words
from semsearch.cli.options import (
    eval_precision_option,
    format_option,
    report_option,
    systems_option,
)
from semsearch.cli.progress import EvaluationProgress, working
from semsearch.cli.render import json_text, note
from semsearch.cli.render_evaluation import difference_record, json_number, sts_tables, warn_of_few
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError, DatasetNotFoundError
from semsearch.evaluation import CosineScorer, StsEvaluation, evaluate_sts, load_pair_scorer
from semsearch.evaluation.datasets import PairColumns, StsSet, load_sts_set, sts_names
from semsearch.evaluation.report import check_report, provenance, write_report


@click.command("sts", cls=Command)
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
            evaluations.append(evaluate_sts(dataset, scorers, on_progress=progress.show))
        if format_name == "jsonl":
            _write_lines(evaluations[-1])
    if format_name == "table":
        sts_tables(evaluations)
    warn_of_few(evaluations, "pairs")
    for scorer in scorers:
        if isinstance(scorer, CosineScorer):
            warn_of_unknown_words(scorer.spec, scorer.encoder)
    if report is not None:
        dense = [scorer for scorer in scorers if isinstance(scorer, CosineScorer)]
        fingerprints = {scorer.spec: scorer.encoder.fingerprint for scorer in dense}
        with working("report"):
            page = write_report(report, evaluations, provenance(sys.argv[1:], fingerprints))
        note(f"report: {page}")


def _sets(data: tuple[str, ...], split: str, columns: PairColumns) -> list[StsSet]:
    """The named sets; without names, all known sets that are downloaded."""
    if data:
        return [load_sts_set(name, split, columns, note) for name in data]
    if any(columns):
        raise ArgumentError("--left-column, --right-column and --score-column need --data FILE")
    if split != "test":
        raise ArgumentError("--split needs --data NAME")
    sets = []
    for name in sts_names():
        try:
            sets.append(load_sts_set(name, split))
        except DatasetNotFoundError as error:
            note(f"left out: {error}")
    if not sets:
        raise DatasetNotFoundError("none of the known sets is downloaded; name one with --data")
    return sets


def _write_lines(evaluation: StsEvaluation) -> None:
    """Print a line per result; those of later systems have the differences from earlier ones."""
    for result in evaluation.results:
        line: dict[str, Any] = {
            "dataset": result.dataset,
            "split": result.split,
            "aggregation": result.aggregation.value,
            "system": result.system,
            "precision": result.precision,
            "n": result.n,
            "spearman": json_number(result.spearman.value),
            "spearman_low": json_number(result.spearman.low),
            "spearman_high": json_number(result.spearman.high),
            "pearson": json_number(result.pearson),
            "seconds": json_number(result.seconds),
            "unscored": evaluation.dataset.unscored,
            "published": result.published,
        }
        line["differences"] = [
            difference_record(other, found)
            for aggregation, system, other, found in evaluation.differences
            if aggregation is result.aggregation and system == result.system
        ]
        click.echo(json_text(line))
