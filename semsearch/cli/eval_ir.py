"""``semsearch eval ir``: retrieval."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path

import click

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
from semsearch.cli.render import note
from semsearch.cli.render_evaluation import print_lines, print_report, print_tables
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError
from semsearch.evaluation import (
    MEASURES,
    IrEvaluation,
    evaluate_retrieval,
    index_rankers,
    load_rankers,
    write_run,
)
from semsearch.evaluation.datasets import load_retrieval_set, read_questions
from semsearch.evaluation.rankers import recorded_files
from semsearch.evaluation.report import check_report, create_folder
from semsearch.evaluation.retrieval import measures as parsed_measures
from semsearch.index import Index
from semsearch.protocols import Encoder


@click.command("ir")
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
    _check_collection(data, directory, queries, qrels)
    if report is not None:
        check_report(report)
    if runs is not None:
        create_folder(runs)
    names = list(dict.fromkeys(systems))
    encoders: dict[str, Encoder] = {}
    evaluations = []
    with ExitStack() as closing:
        index = None
        if directory is not None and queries is not None and qrels is not None:
            index = closing.enter_context(Index.open(existing_index(directory)))
            sets = [read_questions(queries, qrels, index.__contains__)]
        else:
            sets = [load_retrieval_set(name, split, note) for name in data]
        with working("loading"):
            if index is not None:
                rankers = index_rankers(index, names, precision)
            else:
                rankers = load_rankers(names or [DEFAULT_ENCODER], encoders, precision)
        progress = EvaluationProgress([one.name for one in sets], [one.spec for one in rankers])
        for retrieval in sets:
            with progress:
                evaluation = evaluate_retrieval(
                    retrieval,
                    rankers,
                    measures,
                    index=index,
                    whole_documents=whole_documents,
                    on_progress=progress.show,
                )
            evaluations.append(evaluation)
            if format_name == "jsonl":
                print_lines(evaluation, per_query=per_query)
    if format_name == "table":
        print_tables(evaluations)
    print_report(report, evaluations, encoders)
    if runs is not None:
        _write_runs(runs, evaluations, {file.resolve() for file in recorded_files(systems)})


def _check_collection(
    data: tuple[str, ...], directory: Path | None, queries: Path | None, qrels: Path | None
) -> None:
    """Raise ArgumentError unless there is either a collection, or an index with questions."""
    if directory is None:
        if queries is not None or qrels is not None:
            raise ArgumentError("--queries and --qrels need --index DIR")
        if not data:
            raise ArgumentError("name a collection (--data scifact) or an index (--index DIR)")
        return
    if queries is None or qrels is None:
        raise ArgumentError("--index needs --queries FILE and --qrels FILE")
    for name in ("data", "split", "whole_documents"):
        if is_given(name):
            raise ArgumentError(f"--{name.replace('_', '-')} is not for an existing --index")


def _write_runs(folder: Path, evaluations: Sequence[IrEvaluation], taken: set[Path]) -> None:
    """Write the rankings of evaluations, in files other than those `taken`."""
    for evaluation in evaluations:
        for system, run in evaluation.runs.items():
            name = re.sub(r"[^\w.@-]+", "_", f"{evaluation.dataset.name}.{system}").lstrip("._")
            names = chain([name], (f"{name}-{number}" for number in count(2)))
            files = ((folder / f"{one}.run").resolve() for one in names)
            file = next(file for file in files if file not in taken)
            taken.add(file)
            write_run(file, run, system)
