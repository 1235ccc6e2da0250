"""Writes report pages from the template ``page.html``, in which all text is escaped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.evaluation.report import labels, worst
from semsearch.evaluation.report.pictures import ir_pictures, sts_pictures
from semsearch.evaluation.report.provenance import Provenance, contents_digest
from semsearch.evaluation.retrieval import IrEvaluation
from semsearch.evaluation.sts import StsEvaluation

PAGE = "index.html"
#: Identifies pages written by semsearch.
GENERATOR = '<meta name="generator" content="semsearch">'


def check_report(folder: Path) -> None:
    """Create and validate the folder of a report, before hours of evaluation.

    Raises:
        ArgumentError: the folder cannot be created or written, or contains another page.
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "plot", "a report")
    page = folder / PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_ours = not page.exists() or GENERATOR.encode() in page.read_bytes()
    except FileExistsError:
        raise ArgumentError(f"{folder} is a file; --report needs a folder") from None
    except OSError as error:
        raise ArgumentError(f"{folder}: {error.strerror}") from None
    if not is_ours:
        raise ArgumentError(f"{page} is not a semsearch report; name another folder")
    if not os.access(folder, os.W_OK):
        raise ArgumentError(f"{folder} cannot be written")


def write_report(
    folder: Path,
    evaluations: Sequence[StsEvaluation] | Sequence[IrEvaluation],
    provenance: Provenance,
) -> Path:
    """Write ``index.html`` atomically into a folder validated by `check_report`.

    Raises:
        ArgumentError: it cannot be written.
    """
    file = folder / PAGE
    unfinished = file.with_suffix(".tmp")
    try:
        unfinished.write_text(_html(evaluations, provenance), "utf-8", newline="\n")
        unfinished.replace(file)
    except OSError as error:
        raise ArgumentError(f"{file}: {error.strerror}") from None
    return file


def _html(evaluations: Sequence[Any], provenance: Provenance) -> str:
    """The page as self-contained HTML."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["interval"] = labels.interval_cell
    is_sts = isinstance(evaluations[0], StsEvaluation)
    template = files("semsearch.evaluation.report").joinpath("page.html").read_text("utf-8")
    return environment.from_string(template).render(
        is_sts=is_sts,
        evaluations=evaluations,
        systems=list(evaluations[0].scores if is_sts else evaluations[0].runs),
        pictures=(sts_pictures if is_sts else ir_pictures)(evaluations),
        provenance=provenance,
        labels=labels,
        worst=worst,
        digest=contents_digest,
        generator=Markup(GENERATOR),  # noqa: S704 -- ours
        drawn=Markup,
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return labels.printable(value)
    return value
