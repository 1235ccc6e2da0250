"""Converts matplotlib figures to inline SVG, with unique ids and the colours of the page."""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from semsearch.evaluation.report.labels import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colours of the figures, replaced by CSS variables of the page (light and dark).
INK, FAINT, LINE, PAPER = "#1a1a1a", "#8a8a8a", "#dddddd", "#fefefe"
ACCENT, WORSE = "#1f6fb5", "#c0500c"
_CSS = {INK: "ink", FAINT: "faint", LINE: "line", PAPER: "paper", ACCENT: "accent", WORSE: "worse"}

STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # searchable text in the page's font
    "svg.hashsalt": "semsearch",  # the same figure has the same ids
    "text.parse_math": False,  # names may contain dollars
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "grid.color": LINE,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
}


def draw(width: float, height: float, alt: str, paint: Callable[[Figure], None]) -> str:
    """Draw a figure in the style of the page; returns an SVG element.

    Args:
        width: in inches.
        height: in inches.
        alt: a description for screen readers.
        paint: adds axes to the figure.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    picture = io.StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The page has a font for characters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(width, height))
        paint(figure)
        unnamed = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(picture, format="svg", metadata=unnamed)
    svg = picture.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style.*?</style>", "", svg, flags=re.DOTALL)  # would apply to the whole page
    key = hashlib.sha256(svg.encode()).hexdigest()[:8]
    svg = re.sub(r"<[^>]*>", lambda tag: _inline(tag[0], key), svg)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(printable(alt))}" ', 1)


def _inline(tag: str, key: str) -> str:
    """A tag whose ids begin with a key, and whose colours are those of the page."""
    tag = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", tag)
    for colour, variable in _CSS.items():
        tag = tag.replace(colour, f"var(--{variable})")
    return tag
