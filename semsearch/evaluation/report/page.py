"""Report pages, their parts, and their HTML, in which all text is escaped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from semsearch.errors import MissingExtraError, OutputError
from semsearch.evaluation.report.labels import printable
from semsearch.evaluation.report.provenance import Provenance

PAGE = "index.html"
#: Identifies pages written by semsearch.
GENERATOR = '<meta name="generator" content="semsearch">'

#: A text, or several that are shown as a list.
Cell: TypeAlias = str | Sequence[str]


class Table(NamedTuple):
    """A table; columns whose heading begins with > are right-aligned.

    The first column holds row headers.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Figure(NamedTuple):
    """Related drawings, side by side if there is room."""

    caption: str
    drawings: Sequence[str]  #: SVG elements


class Section(NamedTuple):
    """A section of the page, listed in the table of contents."""

    heading: str
    text: str
    blocks: Sequence[Table | Figure]


class Page(NamedTuple):
    """A report."""

    title: str
    sections: Sequence[Section]
    provenance: Provenance


def html(page: Page) -> str:
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
    template = files("semsearch.evaluation.report").joinpath("page.html").read_text("utf-8")
    return environment.from_string(template).render(
        page=page,
        facts=Table("Versions and machine", ["what", "value"], list(page.provenance.facts.items())),
        generator=Markup(GENERATOR),  # noqa: S704 -- ours
        drawn=Markup,
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value


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
        raise OutputError(f"{folder} is a file; --report needs a folder") from None
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from None
    if not is_ours:
        raise OutputError(f"{page} is not a semsearch report; name another folder")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{folder} cannot be written")


def write_page(folder: Path, page: Page) -> Path:
    """Write a page atomically.

    Raises:
        ArgumentError: it cannot be written.
    """
    file = folder / PAGE
    unfinished = file.with_suffix(".tmp")
    try:
        unfinished.write_text(html(page), "utf-8", newline="\n")
        unfinished.replace(file)
    except OSError as error:
        raise OutputError(f"{file}: {error.strerror}") from None
    return file
