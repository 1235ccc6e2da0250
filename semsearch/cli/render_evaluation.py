"""Renders evaluations in a terminal and as JSON lines."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from semsearch.cli.render import PROSE_WIDTH, Entry, console, note, print_entries, visible
from semsearch.errors import quantity
from semsearch.evaluation import Difference, Interval, IrEvaluation, StsEvaluation
from semsearch.evaluation.retrieval import IrResult
from semsearch.evaluation.sts import StsResult

STS_NOTE = (
    "Spearman's and Pearson's correlation x 100; 95 % bootstrap intervals over pairs. "
    "all: all pairs together, as in the papers; mean: the mean over subsets."
)
IR_NOTE = "Means over queries x 100; 95 % bootstrap intervals over queries."
WHOLE_DOCUMENTS_NOTE = "Each document is one passage, of which an encoder reads the beginning."
PUBLISHED_NOTE = "published: the same system on the same data."

#: Over fewer pairs or queries, intervals are too narrow.
FEW = 10


def sts_tables(evaluations: Sequence[StsEvaluation]) -> None:
    """Print results, what was left out, and the differences of the systems."""
    for evaluation in evaluations:
        results = evaluation.results
        rows = [
            [
                result.aggregation.value,
                _interval(result.spearman),
                _number(result.pearson),
                _published(result.published),
                _system(result),
            ]
            for result in results
        ]
        headings = ["over", ">Spearman", ">Pearson", ">published", "system"]
        pairs = quantity(max(result.n for result in results), "pair")
        _print(f"{_name(evaluation)}: {pairs}", headings, rows)
    published = any(result.published is not None for one in evaluations for result in one.results)
    _note(f"{STS_NOTE} {PUBLISHED_NOTE}" if published else STS_NOTE)
    for evaluation in evaluations:
        if evaluation.dataset.unscored:
            left_out = quantity(evaluation.dataset.unscored, "pair")
            _note(f"{_name(evaluation)}: {left_out} without a gold score left out")
        if constant := _constant(evaluation):
            _note(f"{_name(evaluation)}: undefined, since all scores are equal: {constant}")
    if any(evaluation.differences for evaluation in evaluations):
        click.echo()
        _note("Spearman, paired differences on the same pairs (bootstrap)")
    for evaluation in evaluations:
        rows = [
            [aggregation.value, *_difference(found), f"{_near(system)} minus {_near(other)}"]
            for aggregation, system, other, found in evaluation.differences
        ]
        _print(_name(evaluation), ["over", ">difference", ">p", "systems"], rows)


def ir_tables(evaluations: Sequence[IrEvaluation]) -> None:
    """Print results and the differences of the systems."""
    measures = [*dict.fromkeys(result.measure for one in evaluations for result in one.results)]
    for evaluation in evaluations:
        results = sorted(evaluation.results, key=lambda one: measures.index(one.measure))
        rows = [
            [result.measure, _interval(result.mean), _published(result.published), _system(result)]
            for result in results
        ]
        queries = quantity(results[0].n, "query")
        headings = ["measure", ">mean", ">published", "system"]
        _print(f"{_name(evaluation)}: {queries}", headings, rows)
    note = IR_NOTE
    if any(one.whole_documents for one in evaluations):
        note += f" {WHOLE_DOCUMENTS_NOTE}"
    if any(result.published is not None for one in evaluations for result in one.results):
        note += f" {PUBLISHED_NOTE}"
    _note(note)
    if any(evaluation.differences for evaluation in evaluations):
        click.echo()
        _note("Paired differences on the same queries (randomisation test)")
    for evaluation in evaluations:
        rows = [
            [measure, *_difference(found), f"{_near(system)} minus {_near(other)}"]
            for measure, system, other, found in evaluation.differences
        ]
        _print(_name(evaluation), ["measure", ">difference", ">p", "systems"], rows)


def warn_of_few(evaluations: Sequence[StsEvaluation | IrEvaluation], things: str) -> None:
    """Warn on standard error of intervals over too few pairs or queries; one has no interval."""
    if names := [_name(one) for one in evaluations if 1 < one.results[0].n < FEW]:
        note(f"{', '.join(names)}: intervals over fewer than {FEW} {things} are unreliable")


def json_number(value: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return None if math.isnan(value) else round(float(value), 4)


def difference_record(other: str, found: Difference) -> dict[str, Any]:
    """The difference between a system and another, for JSON."""
    numbers = {key: json_number(getattr(found, key)) for key in ("value", "low", "high", "p")}
    return {"from": other, **numbers, "p_is_bound": found.p_is_bound}


def _constant(evaluation: StsEvaluation) -> str:
    """The scores that are constant in a subset, if a correlation is undefined."""
    if not any(math.isnan(result.pearson) for result in evaluation.results):
        return ""
    found, start = [], 0
    for subset, pairs in evaluation.dataset.subsets.items():
        end = start + len(pairs)
        columns = {"gold scores": [pair.gold for pair in pairs]} | {
            _near(system): scores[start:end].tolist()
            for system, scores in evaluation.scores.items()
        }
        found += [f"{name} in {subset}" for name, column in columns.items() if len({*column}) == 1]
        start = end
    return ", ".join(found)


def _number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:z.2f}"


def _interval(found: Interval) -> str:
    if math.isnan(found.low):
        return _number(found.value)
    return f"{found.value:z.2f} [{found.low:z.2f}, {found.high:z.2f}]"


def _difference(found: Difference) -> list[str]:
    if math.isnan(found.value):
        return [_number(found.value), ""]
    shown = f"{found.value:+z.2f}"
    if not math.isnan(found.low):
        shown += f" [{found.low:+z.2f}, {found.high:+z.2f}]"
    return [shown, found.p_shown]


def _published(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _system(result: StsResult | IrResult) -> str:
    """The name of a system, its precision and its computing time."""
    time = None if math.isnan(result.seconds) else f"{result.seconds:.1f} s"
    facts = ", ".join(filter(None, [result.precision, time]))
    return f"{_near(result.system)} ({facts})" if facts else _near(result.system)


def _near(system: str) -> str:
    """The name of a system; paths below the working directory are relative."""
    return system.replace(f"{Path.cwd()}{os.sep}", "./")


def _name(evaluation: StsEvaluation | IrEvaluation) -> str:
    return f"{evaluation.dataset.name} {evaluation.dataset.split}"


def _note(text: str) -> None:
    from rich.text import Text

    out = console()
    out.print(Text(visible(text)), width=min(out.width, PROSE_WIDTH))


def _print(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under its title, without the columns that are empty.

    Args:
        title: printed above the table.
        headings: a leading > aligns a column to the right; the last column may wrap.
        rows: the cells; nothing is printed without rows.
    """
    from rich.text import Text

    if not rows:
        return
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    entries = [
        Entry([row[place] for place in kept[:-1]], Text(visible(row[-1])), Text()) for row in rows
    ]
    out = console()
    out.print(Text(visible(title), style="bold"))
    print_entries(out, [headings[place] for place in kept], entries)
