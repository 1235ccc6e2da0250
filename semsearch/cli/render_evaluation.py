"""Renders evaluations in a terminal, as JSON lines and as reports."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from semsearch.cli.language_fit import warn_of_unknown_words
from semsearch.cli.render import (
    PROSE_WIDTH,
    Entry,
    console,
    note,
    print_entries,
    visible,
    write_json_line,
)
from semsearch.errors import quantity
from semsearch.evaluation import IrEvaluation, StsEvaluation
from semsearch.evaluation.report import provenance, write_report
from semsearch.evaluation.results import Result
from semsearch.evaluation.statistics import shown_number
from semsearch.protocols import Encoder

STS_NOTE = (
    "Spearman's and Pearson's correlation x 100; 95 % bootstrap intervals over pairs. "
    "all: all pairs together, as in the papers; mean: the mean over subsets."
)
IR_NOTE = "Means over queries x 100; 95 % bootstrap intervals over queries."
WHOLE_DOCUMENTS_NOTE = " Each document is one passage, of which an encoder reads the beginning."
STS_DIFFERENCES = "Spearman, paired differences on the same pairs (bootstrap)"
IR_DIFFERENCES = "Paired differences on the same queries (randomisation test)"
PUBLISHED_NOTE = " published: the same system on the same data."

#: Over fewer pairs or queries, intervals are too narrow.
FEW = 10


def print_tables(evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation]) -> None:
    """Print results, what was left out, and the differences of the systems."""
    is_sts = isinstance(evaluations[0], StsEvaluation)
    over, estimate, thing = ("over", "Spearman", "pair") if is_sts else ("measure", "mean", "query")
    headings = [over, f">{estimate}", ">Pearson", ">published", "system"]
    for evaluation in evaluations:
        measures = list(dict.fromkeys(result.over for result in evaluation.results))
        results = sorted(evaluation.results, key=lambda one: measures.index(one.over))
        rows = [
            [
                result.over,
                result.estimate.shown,
                "" if result.pearson is None else shown_number(result.pearson),
                "" if result.published is None else shown_number(result.published),
                _system(result),
            ]
            for result in results
        ]
        _print(f"{_name(evaluation)}: {quantity(results[0].n, thing)}", headings, rows)
    text = STS_NOTE if is_sts else IR_NOTE
    if any(isinstance(one, IrEvaluation) and one.whole_documents for one in evaluations):
        text += WHOLE_DOCUMENTS_NOTE
    if any(result.published is not None for one in evaluations for result in one.results):
        text += PUBLISHED_NOTE
    _print_text(text)
    for evaluation in evaluations:
        if isinstance(evaluation, StsEvaluation) and evaluation.dataset.unscored:
            left_out = quantity(evaluation.dataset.unscored, "pair")
            _print_text(f"{_name(evaluation)}: {left_out} without a gold score left out")
        if any(math.isnan(result.estimate.value) for result in evaluation.results):
            _print_text(f"{_name(evaluation)}: undefined where all scores of a subset are equal")
    if any(evaluation.differences for evaluation in evaluations):
        click.echo()
        _print_text(STS_DIFFERENCES if is_sts else IR_DIFFERENCES)
    for evaluation in evaluations:
        rows = [
            [of, found.shown, found.p_shown, f"{_near(system)} minus {_near(other)}"]
            for of, system, other, found in evaluation.differences
        ]
        _print(_name(evaluation), [over, ">difference", ">p", "systems"], rows)


def print_lines(evaluation: StsEvaluation | IrEvaluation, *, per_query: bool = False) -> None:
    """Print a line of JSON per result, with its differences from earlier systems."""
    for result in evaluation.results:
        value, low, high = result.estimate
        line: dict[str, Any] = {
            "dataset": evaluation.dataset.name,
            "split": evaluation.dataset.split,
            "system": result.system,
            "precision": result.precision,
            "n": result.n,
            "seconds": result.seconds,
            "published": result.published,
        }
        if isinstance(evaluation, StsEvaluation):
            line |= {"aggregation": result.over, "spearman": value, "pearson": result.pearson}
            line |= {"spearman_low": low, "spearman_high": high}
            line["unscored"] = evaluation.dataset.unscored
        else:
            line |= {"measure": result.over, "value": value, "low": low, "high": high}
            line["whole_documents"] = evaluation.whole_documents
            if per_query:
                values = evaluation.per_query[result.system][result.over].round(4).tolist()
                line["per_query"] = dict(zip(evaluation.dataset.queries, values, strict=True))
        line["differences"] = [
            {"from": other, **_json_numbers(difference._asdict())}
            for of, system, other, difference in evaluation.differences
            if of == result.over and system == result.system
        ]
        write_json_line(_json_numbers(line))


def print_report(
    folder: Path | None,
    evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation],
    encoders: Mapping[str, Encoder],
) -> None:
    """Print warnings, and write the page of a report, if there is a folder for it."""
    if few := [_name(one) for one in evaluations if 1 < one.results[0].n < FEW]:  # one has none
        things = "pairs" if isinstance(evaluations[0], StsEvaluation) else "queries"
        note(f"{', '.join(few)}: intervals over fewer than {FEW} {things} are unreliable")
    for name, encoder in encoders.items():
        warn_of_unknown_words(name, encoder)
    if folder is not None:
        fingerprints = {name: encoder.fingerprint for name, encoder in encoders.items()}
        page = write_report(folder, evaluations, provenance(sys.argv[1:], fingerprints))
        note(f"report: {page}")


def _json_numbers(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers for JSON, which has no NaN; other values are unchanged."""
    rounded = {name: round(one, 4) for name, one in values.items() if isinstance(one, float)}
    return values | {name: None if math.isnan(one) else one for name, one in rounded.items()}


def _system(result: Result) -> str:
    """The name of a system, its precision and its computing time."""
    time = "" if math.isnan(result.seconds) else f"{result.seconds:.1f} s"
    facts = ", ".join(filter(None, [result.precision, time]))
    return f"{_near(result.system)} ({facts})" if facts else _near(result.system)


def _near(system: str) -> str:
    """The name of a system; paths below the working directory are relative."""
    return system.replace(f"{Path.cwd()}{os.sep}", "./")


def _name(evaluation: StsEvaluation | IrEvaluation) -> str:
    return f"{evaluation.dataset.name} {evaluation.dataset.split}"


def _print_text(text: str) -> None:
    out = console()
    out.print(visible(text), width=min(out.width, PROSE_WIDTH))


def _print(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table under its title, without the columns that are empty."""
    if not rows:
        return
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    entries = [
        Entry([row[place] for place in kept[:-1]], Text(visible(row[-1])), Text()) for row in rows
    ]
    out = console()
    out.print(visible(title), style="bold")
    print_entries(out, [headings[place] for place in kept], entries)
