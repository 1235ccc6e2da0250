"""The report of ``semsearch eval ir``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from semsearch.datasets import RetrievalSet
from semsearch.evaluation.report.figures import Point, draw_forest, draw_gains
from semsearch.evaluation.report.labels import (
    interval_cell,
    number_cell,
    rate_cell,
    short_names,
    shortened,
)
from semsearch.evaluation.report.page import Cell, Figure, Page, Section, Table, write_page
from semsearch.evaluation.report.provenance import Provenance, contents_digest
from semsearch.evaluation.report.sections import difference_section, name_of, speed_section
from semsearch.evaluation.report.worst import WorstQuery, worst_queries
from semsearch.evaluation.retrieval import IrEvaluation

#: The number of documents shown per query, and the length of documents and queries.
SHOWN = 3
DOCUMENT_CHARACTERS = 120
QUERY_CHARACTERS = 300


def write_ir_report(
    folder: Path, evaluations: Sequence[IrEvaluation], provenance: Provenance
) -> Path:
    """Write ``index.html`` into a folder validated by `check_report`.

    Raises:
        ArgumentError: it cannot be written.
    """
    names = short_names(evaluations[0].runs)
    differences = difference_section(
        "Differences between two systems on the same queries; p values are from a randomisation "
        "test. With many comparisons, some small p values are due to chance.",
        "Paired differences, times 100",
        "measure",
        [
            (system, other, name_of(evaluation.dataset), measure, found)
            for evaluation in evaluations
            for measure, system, other, found in evaluation.differences
        ],
    )
    sections = [
        _results(evaluations, names),
        *([differences, _gains(evaluations, names)] if len(names) > 1 else []),
        speed_section(
            "Timed once, on the machine below, without loading the model: indexing the documents "
            "and answering all queries, or only the latter with an existing index. Runs from a "
            "file have no time.",
            "documents and queries",
            [_speeds(evaluation, names) for evaluation in evaluations],
        ),
        _worst(evaluations),
        _data(evaluations),
    ]
    return write_page(folder, Page("Retrieval", sections, provenance))


def _results(evaluations: Sequence[IrEvaluation], names: dict[str, str]) -> Section:
    text = (
        "How well relevant documents are ranked: means over queries, times 100. Intervals are 95 % "
        "bootstrap intervals over queries. "
    )
    if any(evaluation.whole_documents for evaluation in evaluations):
        text += (
            "Each document is one passage, truncated by the encoder. Published: the value in a "
            "paper, for the same weights and queries."
        )
    else:
        text += "Documents are split into passages, as by semsearch index and query."
    blocks: list[Table | Figure] = []
    for evaluation in evaluations:
        name = name_of(evaluation.dataset)
        panels: dict[str, list[Point]] = {}
        for one in evaluation.results:
            point = Point(names[one.system], one.published or math.nan, one.mean)
            panels.setdefault(one.measure, []).append(point)
        caption = f"{name}. Mean: dot, its 95 % interval: line, published value: hollow diamond."
        alt = f"Measures on {name} with intervals; the table above has the values."
        forest = draw_forest(list(panels.items()), "mean × 100", alt)
        blocks += [_result_table(evaluation), Figure(caption, [forest])]
    return Section("Results", text, blocks)


def _result_table(evaluation: IrEvaluation) -> Table:
    """A row for each system, a column for each measure."""
    dataset = evaluation.dataset
    rows = []
    for system in evaluation.runs:
        found = [result for result in evaluation.results if result.system == system]
        published = [
            f"{one.measure} {number_cell(one.published)}"
            for one in found
            if one.published is not None
        ]
        rows.append(
            [
                system,
                found[0].precision or "",
                *(interval_cell(result.mean) for result in found),
                rate_cell(_texts(dataset), found[0].seconds),
                ", ".join(published),
            ]
        )
    measures = [f">{name}" for name in evaluation.per_query[system]]
    caption = f"{name_of(dataset)}, {len(dataset.queries):,} queries"
    return Table(caption, ["system", "precision", *measures, ">texts/s", ">published"], rows)


def _gains(evaluations: Sequence[IrEvaluation], names: dict[str, str]) -> Section:
    figures = []
    for evaluation in evaluations:
        measure = _first_measure(evaluation)
        first, *others = evaluation.runs
        drawings = []
        for system in others:
            values = evaluation.per_query[system][measure] - evaluation.per_query[first][measure]
            better, worse = int((values > 0).sum()), int((values < 0).sum())
            counts = f"better {better}, same {len(values) - better - worse}, worse {worse}"
            title = f"{names[system]}\nminus {names[first]}: {counts}"
            alt = f"{measure} of {system} minus that of {first} by query: {counts}."
            drawings.append(draw_gains(values, title, alt))
        name = name_of(evaluation.dataset)
        caption = f"{name}: difference of {measure} × 100, a bar for each query."
        figures.append(Figure(caption, drawings))
    text = "A mean does not show whether a few queries gain much or many gain little."
    return Section("Query by query", text, figures)


def _speeds(
    evaluation: IrEvaluation, names: dict[str, str]
) -> tuple[str, str, str, Sequence[Point]]:
    measure, texts = _first_measure(evaluation), _texts(evaluation.dataset)
    points = [
        Point(names[one.system], texts / one.seconds, one.mean)
        for one in evaluation.results
        if one.measure == measure
    ]
    return name_of(evaluation.dataset), measure, f"{measure} × 100", points


def _worst(evaluations: Sequence[IrEvaluation]) -> Section:
    tables = []
    for evaluation in evaluations:
        measure = _first_measure(evaluation)
        headings = ["query", f">{measure}", ">first relevant", "ranked first", "relevant"]
        for system, run in evaluation.runs.items():
            values = evaluation.per_query[system][measure]
            rows = [
                _worst_row(evaluation.dataset, list(run.get(one.query, {})), one)
                for one in worst_queries(evaluation.dataset, run, values)
            ]
            tables.append(Table(f"{name_of(evaluation.dataset)}, {system}", headings, rows))
    text = (
        "The queries with the lowest values; among equal ones, first those whose first relevant "
        "document is not found or ranked lowest. First relevant: the rank of the first relevant "
        "document."
    )
    return Section("Worst queries", text, tables)


def _worst_row(retrieval: RetrievalSet, ranked: list[str], worst: WorstQuery) -> list[Cell]:
    judged = retrieval.qrels[worst.query]
    relevant = [name for name, relevance in judged.items() if relevance > 0]
    more = [f"and {len(relevant) - SHOWN:,} more"] if len(relevant) > SHOWN else []
    return [
        shortened(f"{worst.query}: {retrieval.queries[worst.query]}", QUERY_CHARACTERS),
        number_cell(worst.value),
        "not found" if worst.first_relevant is None else f"{worst.first_relevant:,}",
        _documents(retrieval, ranked),
        [*_documents(retrieval, relevant), *more],
    ]


def _documents(retrieval: RetrievalSet, names: Sequence[str]) -> list[str]:
    """Ids and beginnings of the first documents; some may be missing from the collection."""
    return [
        shortened(f"{name}: {retrieval.documents.get(name, '')}", DOCUMENT_CHARACTERS)
        for name in names[:SHOWN]
    ]


def _data(evaluations: Sequence[IrEvaluation]) -> Section:
    rows = [
        [
            name_of(dataset),
            f"{len(dataset.documents):,}" if dataset.documents else "of the index",
            f"{len(dataset.queries):,}",
            f"{sum(map(len, dataset.qrels.values())):,}",
            contents_digest(dataset),
        ]
        for dataset, *_ in evaluations
    ]
    headings = ["set", ">documents", ">queries", ">judgements", "digest"]
    text = (
        "Reports with the same digest used the same collection in the same order; the documents of "
        "an existing index are not part of it."
    )
    return Section("Data", text, [Table("Collections", headings, rows)])


def _first_measure(evaluation: IrEvaluation) -> str:
    return evaluation.results[0].measure


def _texts(retrieval: RetrievalSet) -> int:
    return len(retrieval.documents) + len(retrieval.queries)
