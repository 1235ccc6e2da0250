"""Writes report pages from the template ``page.html``, in which all text is escaped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.evaluation.report import figures, labels, worst
from semsearch.evaluation.report.provenance import Provenance
from semsearch.evaluation.retrieval import IrEvaluation
from semsearch.evaluation.statistics import shown_number
from semsearch.evaluation.sts import StsEvaluation

PAGE = "index.html"
#: Identifies pages written by semsearch.
GENERATOR = '<meta name="generator" content="semsearch">'


def create_folder(folder: Path) -> None:
    """Create a folder for results and check that it can be written, before hours of evaluation.

    Raises:
        ArgumentError: it cannot be written.
        OSError: it cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{folder} cannot be written")


def check_report(folder: Path) -> None:
    """Create the folder of a report, and check that it can be written.

    Raises:
        ArgumentError: the folder cannot be written, or contains another page.
        MissingExtraError: matplotlib or jinja2 is not installed.
        OSError: the folder cannot be created.
    """
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "plot", "a report")
    create_folder(folder)
    page = folder / PAGE
    if page.exists() and GENERATOR.encode() not in page.read_bytes():
        raise ArgumentError(f"{page} is not a semsearch report; name another folder")


def write_report(
    folder: Path,
    evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation],
    provenance: Provenance,
) -> Path:
    """Write ``index.html`` atomically into a folder validated by `check_report`."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = files("semsearch.evaluation.report").joinpath("page.html").read_text("utf-8")
    page = environment.from_string(template).render(
        is_sts=isinstance(evaluations[0], StsEvaluation),
        evaluations=evaluations,
        systems=list(dict.fromkeys(result.system for result in evaluations[0].results)),
        figures=figures,
        provenance=provenance,
        labels=labels,
        shown_number=shown_number,
        worst=worst,
        generator=Markup(GENERATOR),  # noqa: S704 -- ours
        drawn=Markup,
    )
    file = folder / PAGE
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(labels.printable(page), "utf-8", newline="\n")
    unfinished.replace(file)
    return file
