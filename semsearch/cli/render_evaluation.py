"""Renders evaluations in a terminal, as JSON lines and as reports."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from semsearch.cli.language_fit import warn_of_unknown_words
from semsearch.cli.progress import working
from semsearch.cli.render import (
    PROSE_WIDTH,
    Entry,
    console,
    json_text,
    note,
    print_entries,
    visible,
)
from semsearch.evaluation import IrEvaluation, StsEvaluation
from semsearch.evaluation.report import provenance, write_report
from semsearch.evaluation.retrieval import IrResult
from semsearch.evaluation.statistics import shown_number
from semsearch.evaluation.sts import StsResult
from semsearch.protocols import Encoder
from semsearch.texts import quantity

STS_NOTE = (
    "Spearman's and Pearson's correlation x 100; 95 % bootstrap intervals over pairs. "
    "all: all pairs together, as in the papers; mean: the mean over subsets."
)
IR_NOTE = "Means over queries x 100; 95 % bootstrap intervals over queries."
WHOLE_DOCUMENTS_NOTE = " Each document is one passage, of which an encoder reads the beginning."
PUBLISHED_NOTE = " published: the same system on the same data."

#: Over fewer pairs or queries, intervals are too narrow.
FEW = 10


def sts_tables(evaluations: Sequence[StsEvaluation]) -> None:
    """Print results, what was left out, and the differences of the systems."""
    for evaluation in evaluations:
        rows = [
            [
                result.aggregation.value,
                result.spearman.shown,
                shown_number(result.pearson),
                _published(result),
                _system(result),
            ]
            for result in evaluation.results
        ]
        headings = ["over", ">Spearman", ">Pearson", ">published", "system"]
        pairs = quantity(evaluation.results[0].n, "pair")
        _print(f"{_name(evaluation)}: {pairs}", headings, rows)
    _print_note(STS_NOTE, evaluations)
    for evaluation in evaluations:
        if evaluation.dataset.unscored:
            left_out = quantity(evaluation.dataset.unscored, "pair")
            _print_note(f"{_name(evaluation)}: {left_out} without a gold score left out")
        if any(math.isnan(result.pearson) for result in evaluation.results):
            _print_note(f"{_name(evaluation)}: undefined where all scores of a subset are equal")
    _print_differences(
        "over", evaluations, "Spearman, paired differences on the same pairs (bootstrap)"
    )
    _warn_of_few(evaluations, "pairs")


def ir_tables(evaluations: Sequence[IrEvaluation]) -> None:
    """Print results and the differences of the systems."""
    for evaluation in evaluations:
        measures = list(dict.fromkeys(result.measure for result in evaluation.results))
        results = sorted(evaluation.results, key=lambda one: measures.index(one.measure))
        rows = [[one.measure, one.mean.shown, _published(one), _system(one)] for one in results]
        queries = quantity(results[0].n, "query")
        headings = ["measure", ">mean", ">published", "system"]
        _print(f"{_name(evaluation)}: {queries}", headings, rows)
    is_whole = any(evaluation.whole_documents for evaluation in evaluations)
    _print_note(IR_NOTE + WHOLE_DOCUMENTS_NOTE * is_whole, evaluations)
    _print_differences(
        "measure", evaluations, "Paired differences on the same queries (randomisation test)"
    )
    _warn_of_few(evaluations, "queries")


def result_line(
    evaluation: StsEvaluation | IrEvaluation, result: StsResult | IrResult, **values: Any
) -> None:
    """Print a result as a line of JSON, with its differences from earlier systems.

    Args:
        evaluation: of the set.
        result: one of its results.
        values: what is particular to its kind; numbers are rounded.
    """
    over = result.aggregation if isinstance(result, StsResult) else result.measure
    line = {
        "dataset": evaluation.dataset.name,
        "split": evaluation.dataset.split,
        "system": result.system,
        "precision": result.precision,
        "n": result.n,
        **{name: json_number(value) for name, value in values.items()},
        "seconds": json_number(result.seconds),
        "published": result.published,
        "differences": [
            {
                "from": other,
                **{name: json_number(value) for name, value in difference._asdict().items()},
            }
            for of, system, other, difference in evaluation.differences
            if of == over and system == result.system
        ],
    }
    click.echo(json_text(line))


def json_number(value: Any) -> Any:
    """A number for JSON, which has no NaN; other values are unchanged."""
    if not isinstance(value, float):
        return value
    return None if math.isnan(value) else round(float(value), 4)


def print_report(
    folder: Path | None,
    evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation],
    encoders: Mapping[str, Encoder],
) -> None:
    """Report words without vectors, and write the page of a report, if there is a folder for it."""
    for name, encoder in encoders.items():
        warn_of_unknown_words(name, encoder)
    if folder is not None:
        fingerprints = {name: encoder.fingerprint for name, encoder in encoders.items()}
        with working("report"):
            page = write_report(folder, evaluations, provenance(sys.argv[1:], fingerprints))
        note(f"report: {page}")


def _print_differences(
    over: str, evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation], title: str
) -> None:
    if any(evaluation.differences for evaluation in evaluations):
        click.echo()
        _print_note(title)
    for evaluation in evaluations:
        rows = [
            [str(of), found.shown, found.p_shown, f"{_near(system)} minus {_near(other)}"]
            for of, system, other, found in evaluation.differences
        ]
        _print(_name(evaluation), [over, ">difference", ">p", "systems"], rows)


def _warn_of_few(evaluations: Sequence[StsEvaluation | IrEvaluation], things: str) -> None:
    """Warn on standard error of intervals over too few pairs or queries; one has no interval."""
    if names := [_name(one) for one in evaluations if 1 < one.results[0].n < FEW]:
        note(f"{', '.join(names)}: intervals over fewer than {FEW} {things} are unreliable")


def _published(result: StsResult | IrResult) -> str:
    return "" if result.published is None else f"{result.published:.2f}"


def _system(result: StsResult | IrResult) -> str:
    """The name of a system, its precision and its computing time."""
    time = "" if math.isnan(result.seconds) else f"{result.seconds:.1f} s"
    facts = ", ".join(filter(None, [result.precision, time]))
    return f"{_near(result.system)} ({facts})" if facts else _near(result.system)


def _near(system: str) -> str:
    """The name of a system; paths below the working directory are relative."""
    return system.replace(f"{Path.cwd()}{os.sep}", "./")


def _name(evaluation: StsEvaluation | IrEvaluation) -> str:
    return f"{evaluation.dataset.name} {evaluation.dataset.split}"


def _print_note(text: str, evaluations: Sequence[StsEvaluation | IrEvaluation] = ()) -> None:
    """Print a text in lines, with an explanation of published values, if there are any."""
    from rich.text import Text

    if any(result.published is not None for one in evaluations for result in one.results):
        text += PUBLISHED_NOTE
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
