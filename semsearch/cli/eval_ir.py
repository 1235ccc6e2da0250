"""``semsearch eval ir``: retrieval."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.language_fit import warn_of_unknown_words
from semsearch.cli.options import (
    directory_option,
    eval_precision_option,
    existing_index,
    format_option,
    is_given,
    judged_option,
    report_option,
    systems_option,
)
from semsearch.cli.progress import EvaluationProgress, working
from semsearch.cli.render import json_text, note
from semsearch.cli.render_evaluation import difference_record, ir_tables, json_number, warn_of_few
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import CROSS_ENCODER_PREFIX
from semsearch.errors import ArgumentError
from semsearch.evaluation import (
    MEASURES,
    IrEvaluation,
    Ranker,
    evaluate_retrieval,
    index_rankers,
    load_rankers,
    write_run,
)
from semsearch.evaluation.datasets import RetrievalSet, load_retrieval_set, read_questions
from semsearch.evaluation.rankers import BM25, RUN_PREFIX, recorded_files
from semsearch.evaluation.report import check_report, provenance, write_report
from semsearch.evaluation.retrieval import measures as parsed_measures
from semsearch.index import Index
from semsearch.protocols import Encoder


@click.command("ir", cls=Command)
@click.option(
    "--data",
    metavar="NAME|PATH",
    multiple=True,
    help="scifact, cranfield, a BEIR folder, a folder of a SMART collection or of LISA, or a CSV "
    "or TSV of queries, passages and relevance.",
)
@click.option(
    "--split", metavar="NAME", default="test", show_default=True, help="The split of the qrels."
)
@click.option(
    "--whole-documents",
    is_flag=True,
    help="Store each document as one passage, truncated by the encoder, as in published "
    "evaluations.",
)
@directory_option("Evaluate this index, with --queries and --qrels.")
@judged_option("")
@systems_option(
    None,
    "An encoder (with --index, a space), bm25, hybrid:ENCODER, SYSTEM+cross-encoder:MODEL, or "
    "run:FILE (a run in TREC's format)",
    shown_default=f"{DEFAULT_ENCODER}; with --index, all spaces and bm25",
)
@click.option(
    "--measure",
    "measures",
    metavar="NAME",
    multiple=True,
    default=MEASURES,
    show_default=True,
    help="A measure, as named by ir-measures.",
)
@click.option(
    "--runs",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the ranking of each system to this folder, in TREC's format.",
)
@eval_precision_option
@click.option("--per-query", is_flag=True, help="With jsonl, add the values of each query.")
@format_option("table", "jsonl", description="A table, or one line per result.")
@report_option
def command(
    data: tuple[str, ...],
    split: str,
    whole_documents: bool,
    directory: Path | None,
    queries: Path | None,
    qrels: Path | None,
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    runs: Path | None,
    precision: str,
    per_query: bool,
    format_name: str,
    report: Path | None,
) -> None:
    """Measure how well the documents of a collection are ranked for its queries.

    The documents are added to a temporary index, which is searched as by `semsearch query`; or an
    existing index is evaluated with your own questions. Values are multiplied by 100, with 95 %
    bootstrap intervals over the queries; two or more systems are compared with paired randomisation
    tests, whose p values are not adjusted for several comparisons. Rankings have 1,000 documents,
    hybrid and reranked ones 100.

    \b
    semsearch eval ir --data scifact --system bm25 --system minilm --system hybrid:minilm
    semsearch eval ir --data beir/nfcorpus --whole-documents --measure nDCG@10 --measure R@100
    semsearch eval ir --index indexes/news --queries questions.csv --qrels answers.csv
    semsearch eval ir --data cranfield --system run:theirs.run --system minilm --report report
    """
    parsed_measures(measures)  # fail before anything is encoded
    if per_query and format_name != "jsonl":
        raise ArgumentError("--per-query needs --format jsonl")
    _check_outputs(report, runs)
    encoders: dict[str, Encoder] = {}
    if directory is not None:
        _check_index_options(data, whole_documents, systems)
        evaluated = _evaluated_index(directory, queries, qrels, systems, measures, precision)
    else:
        if queries is not None or qrels is not None:
            raise ArgumentError("--queries and --qrels need --index DIR")
        if not data:
            raise ArgumentError("name a collection (--data scifact) or an index (--index DIR)")
        names = list(dict.fromkeys(systems)) or [DEFAULT_ENCODER]
        _check_set_options(whole_documents, names)
        sets = [load_retrieval_set(name, split, note) for name in data]
        with working("loading"):
            rankers = load_rankers(names, encoders, precision)
        evaluated = _evaluated(sets, rankers, measures, whole_documents=whole_documents)
    evaluations = []
    written = {file.resolve() for file in recorded_files(systems)}  # these are not overwritten
    failed: list[str] = []
    for evaluation in evaluated:
        evaluations.append(evaluation)
        if runs is not None:
            failed += _write_runs(runs, evaluation, written)
        if format_name == "jsonl":
            _write_lines(evaluation, per_query)
    if format_name == "table":
        ir_tables(evaluations)
    warn_of_few(evaluations, "queries")
    for name, encoder in encoders.items():
        warn_of_unknown_words(name, encoder)
    if report is not None:
        fingerprints = {name: encoder.fingerprint for name, encoder in encoders.items()}
        with working("report"):
            page = write_report(report, evaluations, provenance(sys.argv[1:], fingerprints))
        note(f"report: {page}")
    if failed:  # after the results
        raise ArgumentError("; ".join(failed))


def _check_index_options(
    data: tuple[str, ...], whole_documents: bool, systems: Sequence[str]
) -> None:
    if data:
        raise ArgumentError("use either --data or --index, not both")
    if whole_documents:
        raise ArgumentError("--whole-documents needs --data: the passages of an index are fixed")
    if is_given("split"):
        raise ArgumentError("--split applies only to --data")
    if is_given("precision") and not any(CROSS_ENCODER_PREFIX in system for system in systems):
        raise ArgumentError(
            "--precision needs --data, or a cross-encoder: the index has vectors of one precision"
        )


def _check_set_options(whole_documents: bool, systems: Sequence[str]) -> None:
    searching = [system for system in systems if not system.startswith(RUN_PREFIX)]
    if whole_documents and not searching:
        raise ArgumentError("--whole-documents needs a system other than runs, which are fixed")
    computes = any(CROSS_ENCODER_PREFIX in system for system in systems)
    if is_given("precision") and not computes and set(searching) <= {BM25}:
        raise ArgumentError("--precision needs an encoder or a cross-encoder")


def _evaluated_index(
    directory: Path,
    queries: Path | None,
    qrels: Path | None,
    systems: tuple[str, ...],
    measures: tuple[str, ...],
    precision: str,
) -> Iterator[IrEvaluation]:
    if queries is None or qrels is None:
        raise ArgumentError("--index needs --queries FILE and --qrels FILE")
    with Index.open(existing_index(directory)) as index:
        questions = read_questions(queries, qrels, index.__contains__)
        with working("loading"):
            rankers = index_rankers(index, list(dict.fromkeys(systems)), precision)
        yield from _evaluated([questions], rankers, measures, index=index)


def _evaluated(
    sets: Sequence[RetrievalSet],
    rankers: Sequence[Ranker],
    measures: tuple[str, ...],
    **options: Any,
) -> Iterator[IrEvaluation]:
    progress = EvaluationProgress([one.name for one in sets], [one.spec for one in rankers])
    for retrieval in sets:
        with progress:
            evaluation = evaluate_retrieval(
                retrieval, rankers, measures, on_progress=progress.show, **options
            )
        yield evaluation


def _check_outputs(report: Path | None, runs: Path | None) -> None:
    """Make the folders for results, before anything is evaluated."""
    if report is not None:
        check_report(report)
    if runs is None:
        return
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArgumentError(f"{runs}: {error.strerror}") from None
    if not os.access(runs, os.W_OK):
        raise ArgumentError(f"{runs}: Permission denied")


def _write_runs(folder: Path, evaluation: IrEvaluation, written: set[Path]) -> Iterator[str]:
    """Write the rankings of an evaluation, in files other than those written or read before.

    Yields:
        Why a ranking cannot be written.
    """
    for system, run in evaluation.runs.items():
        name = re.sub(r"[^\w.@-]+", "_", f"{evaluation.dataset.name}.{system}").lstrip("._")
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        files = (folder / f"{one}.run" for one in names)
        file = next(file for file in files if file.resolve() not in written)
        written.add(file.resolve())
        try:
            write_run(file, run, system)
        except OSError as error:
            yield f"{file}: {error.strerror}"
        except ArgumentError as error:
            yield f"{file}: {error}"


def _write_lines(evaluation: IrEvaluation, per_query: bool) -> None:
    """Print a line per result; those of later systems have the differences from earlier ones."""
    for result in evaluation.results:
        line: dict[str, Any] = {
            "dataset": result.dataset,
            "split": result.split,
            "whole_documents": evaluation.whole_documents,
            "system": result.system,
            "precision": result.precision,
            "measure": result.measure,
            "n": result.n,
            "value": json_number(result.mean.value),
            "low": json_number(result.mean.low),
            "high": json_number(result.mean.high),
            "seconds": json_number(result.seconds),
            "published": result.published,
        }
        line["differences"] = [
            difference_record(other, found)
            for measure, system, other, found in evaluation.differences
            if measure == result.measure and system == result.system
        ]
        if per_query:
            values = evaluation.per_query[result.system][result.measure]
            named = zip(evaluation.dataset.queries, values, strict=True)
            line["per_query"] = {query: json_number(value) for query, value in named}
        click.echo(json_text(line))
