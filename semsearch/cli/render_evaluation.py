"""How evaluations look in a terminal and as JSON lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from semsearch.cli.render import console, json_text, visible
from semsearch.evaluation import Difference, Interval, IrEvaluation, StsEvaluation
from semsearch.texts import quantity

STS_NOTE = (
    "Spearman's and Pearson's correlation x 100; 95 % bootstrap intervals over pairs. "
    "all: all pairs together, as in the papers; mean: the mean over sub-sets. "
    "published: the same system over the same pairs."
)
IR_NOTE = "Means over queries x 100; 95 % bootstrap intervals over queries."
WHOLE_DOCUMENTS_NOTE = (
    "Each document is one passage, of which an encoder reads the beginning. "
    "published: the same system over the same queries."
)


def sts_tables(evaluations: Sequence[StsEvaluation]) -> None:
    """Print results, what was left out, and the differences of the systems."""
    rows = [
        [
            f"{result.dataset} {result.split}",
            result.aggregation.value,
            result.system,
            result.precision or "",
            f"{result.n:,}",
            _interval(result.spearman),
            f"{result.pearson:.2f}",
            "" if result.published is None else f"{result.published:.2f}",
            f"{result.seconds:.1f} s",
        ]
        for evaluation in evaluations
        for result in evaluation.results
    ]
    headings = ["set", "over", "system", "precision", ">pairs", ">Spearman", ">Pearson"]
    _print([*headings, ">published", ">time"], rows)
    click.echo(STS_NOTE)
    for evaluation in evaluations:
        if evaluation.dataset.unscored:
            dataset = evaluation.dataset
            click.echo(
                f"{dataset.name} {dataset.split}: "
                f"{quantity(dataset.unscored, 'pair')} without a gold score left out"
            )
    differences = [
        [
            f"{evaluation.dataset.name} {evaluation.dataset.split}",
            aggregation.value,
            system,
            other,
            *_difference(found),
        ]
        for evaluation in evaluations
        for aggregation, system, other, found in evaluation.differences
    ]
    if differences:
        click.echo("\nSpearman, paired differences on the same pairs (bootstrap)")
        _print(["set", "over", "system", "minus", ">difference", ">p"], differences)


def ir_tables(evaluations: Sequence[IrEvaluation]) -> None:
    """Print results and the differences of the systems."""
    measures = [*dict.fromkeys(result.measure for one in evaluations for result in one.results)]
    rows = [
        [
            f"{result.dataset} {result.split}",
            result.system,
            result.precision or "",
            result.measure,
            f"{result.n:,}",
            _interval(result.mean),
            "" if result.published is None else f"{result.published:.2f}",
            "" if math.isnan(result.seconds) else f"{result.seconds:.1f} s",
        ]
        for evaluation in evaluations
        for result in sorted(evaluation.results, key=lambda one: measures.index(one.measure))
    ]
    headings = ["set", "system", "precision", "measure", ">queries", ">mean", ">published", ">time"]
    whole_documents = any(one.whole_documents for one in evaluations)
    if not whole_documents:
        headings.remove(">published")
        rows = [[*row[:-2], row[-1]] for row in rows]
    _print(headings, rows)
    click.echo(f"{IR_NOTE} {WHOLE_DOCUMENTS_NOTE}" if whole_documents else IR_NOTE)
    differences = [
        [
            f"{evaluation.dataset.name} {evaluation.dataset.split}",
            measure,
            system,
            other,
            *_difference(found),
        ]
        for evaluation in evaluations
        for measure, system, other, found in evaluation.differences
    ]
    if differences:
        click.echo("\nPaired differences on the same queries (randomisation test)")
        _print(["set", "measure", "system", "minus", ">difference", ">p"], differences)


def json_number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if math.isnan(value) else round(float(value), 4)


def difference_record(other: str, found: Difference) -> dict[str, Any]:
    """How much a system is above another, for JSON."""
    numbers = {key: json_number(getattr(found, key)) for key in ("value", "low", "high", "p")}
    return {"from": other, **numbers, "p_is_bound": found.p_is_bound}


def write_json_line(line: dict[str, Any]) -> None:
    """Print a line that a program reads, at once."""
    click.echo(json_text(line))


def _interval(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _difference(found: Difference) -> list[str]:
    return [f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]", found.p_shown]


def _print(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; a heading that begins with > stands to the right, as its column."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        justify: Any = "right" if heading.startswith(">") else "left"
        table.add_column(heading.removeprefix(">"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*[Text(visible(cell)) for cell in row])
    console().print(table)
