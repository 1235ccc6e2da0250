"""``semsearch eval``: evaluate systems on data sets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from semsearch.cli.options import (
    FILE,
    Decorator,
    directory_option,
    existing_index,
    format_option,
    is_given,
    judged_options,
    precision_option,
    repeated_option,
    together,
)
from semsearch.cli.progress import IndexingProgress
from semsearch.cli.render import note
from semsearch.cli.render_evaluation import print_lines, print_report, print_tables
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.errors import ArgumentError
from semsearch.evaluation import (
    MEASURES,
    CosineScorer,
    IrEvaluation,
    evaluate_retrieval,
    evaluate_sts,
    index_rankers,
    load_pair_scorer,
    load_rankers,
    write_run,
)
from semsearch.evaluation.datasets import (
    PairColumns,
    RetrievalSet,
    StsSet,
    load_retrieval_set,
    load_sts_set,
    read_questions,
)
from semsearch.evaluation.report import check_report, create_folder
from semsearch.evaluation.retrieval import measures as parsed_measures
from semsearch.index import Index
from semsearch.protocols import Encoder


@click.group("eval")
def eval_command() -> None:
    """Evaluate encoders, rerankers and BM25 on data sets, with 95 % intervals.

    \b
    semsearch eval sts --system minilm --system glove:glove.6B.300d.txt
    semsearch eval ir --data scifact --system bm25 --system minilm --system hybrid:minilm
    """


def _data_options(description: str, split: str) -> Decorator:
    """``--data`` and ``--split``."""
    return together(
        repeated_option("--data", "data", "NAME|PATH", description),
        click.option("--split", metavar="NAME", default="test", show_default=True, help=split),
    )


def _common_options(systems: str) -> Decorator:
    """The options of both commands."""
    return together(
        repeated_option("--system", "systems", "SPEC", systems),
        precision_option(
            "fp32",
            "The precision of models: fp32 as in published results, auto as in an index; an "
            "existing index has its own.",
        ),
        format_option("table", "jsonl", description="A table, or one line per result."),
        click.option(
            "--report",
            metavar="DIR",
            type=FILE,
            help="Also write a page with plots, DIR/index.html.  [needs the extra 'plot']",
        ),
    )


@eval_command.command("sts", short_help="Correlation of similarity scores with human scores.")
@_data_options(
    "stsbenchmark, sts12 … sts16, sick, stsb-multi:LANGUAGE (en-pt: English against Portuguese), "
    "or a CSV or TSV of pairs with gold scores.  [default: stsbenchmark]",
    "The split; for sick, also: all.",
)
@click.option("--left-column", metavar="C", help="The column of a file with the first texts.")
@click.option("--right-column", metavar="C", help="The column of the second texts.")
@click.option("--score-column", metavar="C", help="The column of the gold scores.")
@_common_options(
    f"An encoder, or cross-encoder:MODEL; several are compared.  [default: {DEFAULT_ENCODER}]"
)
def sts(
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

    If a model has a prompt for documents, both sentences are encoded with it, as in an index.

    \b
    semsearch eval sts --data stsbenchmark
    semsearch eval sts --data sts12 --data sick --system minilm --system bert-base-uncased@mean
    semsearch eval sts --data stsb-multi:pt --data stsb-multi:en-pt
    semsearch eval sts --data my-pairs.csv --format jsonl
    semsearch eval sts --data stsbenchmark --system minilm --system hashing --report report
    """
    columns = PairColumns(left_column, right_column, score_column)
    sets = [load_sts_set(name, split, columns, note) for name in data or ("stsbenchmark",)]
    if report is not None:
        check_report(report)
    evaluations = []
    with IndexingProgress(beginning="loading") as progress:
        names = dict.fromkeys(systems or (DEFAULT_ENCODER,))
        scorers = [load_pair_scorer(spec, precision) for spec in names]
        for dataset in sets:
            evaluations.append(
                evaluate_sts(dataset, scorers, on_progress=_shown_in(progress, dataset))
            )
            if format_name == "jsonl":
                print_lines(evaluations[-1])
    if format_name == "table":
        print_tables(evaluations)
    encoders = {one.spec: one.encoder for one in scorers if isinstance(one, CosineScorer)}
    print_report(report, evaluations, encoders)


def _shown_in(
    progress: IndexingProgress, dataset: StsSet | RetrievalSet
) -> Callable[[str, str, int, int], None]:
    """Shows what a system has done on a set."""
    return lambda system, items, done, total: progress.step(
        f"{dataset.name}, {system}: {items}", done, total
    )


@eval_command.command("ir", short_help="Retrieval measures on a collection.")
@_data_options(
    "scifact, cranfield, a BEIR folder, a folder of a SMART collection or of LISA, or a CSV or TSV "
    "of queries, passages and relevance.",
    "The split of the qrels.",
)
@click.option(
    "--whole-documents", is_flag=True, help="Each document is one passage, as in publications."
)
@directory_option("Evaluate this index, with --queries and --qrels.")
@judged_options
@repeated_option(
    "--measure",
    "measures",
    "NAME",
    f"A measure, as named by ir-measures.  [default: {', '.join(MEASURES)}]",
)
@click.option(
    "--runs", metavar="DIR", type=FILE, help="Also write rankings in TREC's format to this folder."
)
@click.option("--per-query", is_flag=True, help="With jsonl, add the values of each query.")
@_common_options(
    "An encoder (with --index, a space), bm25, hybrid:ENCODER, SYSTEM+cross-encoder:MODEL, or "
    "run:FILE (a run in TREC's format); several are compared.  "
    f"[default: {DEFAULT_ENCODER}; with --index, all spaces and bm25]"
)
def ir(
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
    measures = measures or MEASURES
    parsed_measures(measures)  # fail before anything is encoded
    if per_query and format_name != "jsonl":
        raise ArgumentError("--per-query needs --format jsonl")
    if directory is None and not data:
        raise ArgumentError("name a collection (--data scifact) or an index (--index DIR)")
    if len({directory is None, queries is None, qrels is None}) > 1:
        raise ArgumentError("--index, --queries and --qrels go together")
    if directory is not None and any(map(is_given, ("data", "split", "whole_documents"))):
        raise ArgumentError("--data, --split and --whole-documents are not for an existing --index")
    if report is not None:
        check_report(report)
    if runs is not None:
        create_folder(runs)
    names = list(dict.fromkeys(systems))
    encoders: dict[str, Encoder] = {}
    evaluations = []
    with ExitStack() as stack:
        progress = stack.enter_context(IndexingProgress(beginning="loading"))
        index = None
        if directory is not None and queries is not None and qrels is not None:
            index = stack.enter_context(Index.open(existing_index(directory)))
            sets = [read_questions(queries, qrels, index.__contains__)]
            rankers = index_rankers(index, names, precision)
        else:
            sets = [load_retrieval_set(name, split, progress.note) for name in data]
            rankers = load_rankers(names or [DEFAULT_ENCODER], encoders, precision)
        for retrieval in sets:
            evaluation = evaluate_retrieval(
                retrieval,
                rankers,
                measures,
                index=index,
                whole_documents=whole_documents,
                on_progress=_shown_in(progress, retrieval),
            )
            evaluations.append(evaluation)
            if format_name == "jsonl":
                print_lines(evaluation, per_query=per_query)
    if format_name == "table":
        print_tables(evaluations)
    print_report(report, evaluations, encoders)
    if runs is not None:
        _write_runs(runs, evaluations)


def _write_runs(folder: Path, evaluations: Sequence[IrEvaluation]) -> None:
    """Write the rankings of evaluations; files that exist stay."""
    for evaluation in evaluations:
        for system, run in evaluation.runs.items():
            name = re.sub(r"[^\w.@-]+", "_", f"{evaluation.dataset.name}.{system}").lstrip("._")
            file = folder / f"{name}.run"
            while file.exists():
                file = file.with_stem(f"{file.stem}-2")
            write_run(file, run, system)
