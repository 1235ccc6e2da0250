"""What a page consists of, and its HTML: texts of users are escaped, all of them, in one place."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from semsearch.report.drawing import Drawing
from semsearch.report.labels import printable
from semsearch.report.provenance import Provenance

#: By which a page of ours is known.
GENERATOR = '<meta name="generator" content="semsearch">'

#: A text, or several that become a list.
Cell: TypeAlias = str | Sequence[str]


class Table(NamedTuple):
    """A table; a heading that begins with > stands to the right, as its column.

    The first column names what its row is about.
    """

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Figure(NamedTuple):
    """Drawings that belong together, side by side where there is room."""

    caption: str
    drawings: Sequence[Drawing]


class Section(NamedTuple):
    """A part of the page, which the list of contents names."""

    heading: str
    text: str
    blocks: Sequence[Table | Figure]


class Page(NamedTuple):
    """A report."""

    title: str
    sections: Sequence[Section]
    provenance: Provenance


def html(page: Page) -> str:
    """The page as HTML that loads nothing."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = files("semsearch.report").joinpath("page.html").read_text("utf-8")
    return environment.from_string(template).render(
        page=page,
        facts=Table("Versions and machine", ["what", "value"], list(page.provenance.facts.items())),
        generator=Markup(GENERATOR),  # noqa: S704 -- ours
        drawn=lambda drawing: Markup(drawing.svg),  # noqa: S704 -- written by an XML library
    )


def _printable(value: Any) -> Any:
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return printable(value)
    return value
