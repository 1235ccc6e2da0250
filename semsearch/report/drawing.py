"""Converts matplotlib figures to inline SVG, with unique ids and the colours of the page."""

from __future__ import annotations

import hashlib
import io
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.report.labels import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"

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


class Drawing(NamedTuple):
    """An SVG element with a description."""

    svg: str
    alt: str


def draw(width: float, height: float, alt: str, paint: Callable[[Figure], None]) -> Drawing:
    """Draw a figure in the style of the page.

    Args:
        width: in inches.
        height: in inches.
        alt: a description for screen readers.
        paint: adds axes to the figure.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    picture = io.BytesIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The page has a font for characters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(width, height))
        paint(figure)
        unnamed = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(picture, format="svg", metadata=unnamed)
    return Drawing(_inline(picture.getvalue(), alt), alt)


def _inline(svg: bytes, alt: str) -> str:
    """The SVG element, with unique ids and the colours of the page."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(svg)  # noqa: S314 -- matplotlib's
    key = hashlib.sha256(svg).hexdigest()[:8]
    for definitions in root.findall(f"{{{SVG}}}defs"):
        for rules in definitions.findall(f"{{{SVG}}}style"):
            definitions.remove(rules)  # would apply to the whole page
    for element in root.iter():
        _rename(element, key)
    root.set("role", "img")
    root.set("aria-label", printable(alt))
    for side in ("width", "height"):
        points = float(root.get(side, "0").removesuffix("pt"))
        root.set(side, f"{points * 4 / 3:.0f}")
    del root.attrib["version"]
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, key: str) -> None:
    for name, value in element.items():
        if name == "id":
            element.set(name, f"{key}-{value}")
        elif name == f"{{{XLINK}}}href":
            element.set(name, f"#{key}-{value.removeprefix('#')}")
        elif name == "clip-path":
            element.set(name, value.replace("url(#", f"url(#{key}-"))
        elif name == "style":
            for colour, variable in _CSS.items():
                value = value.replace(colour, f"var(--{variable})")
            element.set(name, value)
