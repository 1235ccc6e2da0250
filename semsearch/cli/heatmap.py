"""Heat maps of the token similarities of two texts, in the terminal or as images."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from semsearch.cli.render import console, visible
from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.explore.inspect import Inspection, TokenSimilarity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The most rows in a terminal, and the widths of labels and numbers ("-0.12").
TERMINAL_ROWS = 40
ROW_LABEL_CELLS = 13
COLUMN_LABEL_CELLS = 8
NUMBER_CELLS = 5

#: The most tokens in an image, and the maximum lengths of labels and texts.
PICTURE_TOKENS = 64
PICTURE_LABEL = 16
TITLE_TEXT = 56

#: The background of higher cosines is too dark for black text.
DARK = 0.6
WHITE, RED, BLUE = (255, 255, 255), (178, 24, 43), (33, 102, 172)

#: Noncharacters, which are invalid in XML.
_NO_CHARACTERS = {0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}


def print_heat_map(similarity: TokenSimilarity) -> None:
    """Print as many tokens as fit, and report how many are left out."""
    from rich.cells import cell_len, set_cell_size
    from rich.table import Table
    from rich.text import Text

    def fitted(label: str, cells: int) -> str:
        return label if cell_len(label) <= cells else set_cell_size(label, cells - 1) + "…"

    out = console()
    left, right = similarity.left, similarity.right
    rows = _labels(left)[:TERMINAL_ROWS]
    columns = [fitted(label, COLUMN_LABEL_CELLS) for label in _labels(right)]
    widths = [max(cell_len(label), NUMBER_CELLS) for label in columns]
    used = accumulate((1 + width for width in widths), initial=ROW_LABEL_CELLS)
    columns = columns[: max(1, sum(cells <= out.width for cells in used) - 1)]
    is_coloured = out.color_system in ("256", "truecolor")  # 16 colours have no shades
    out.print(Text(visible(left.spec), style="bold"))
    out.print(Text(f"rows     {visible(left.text)}"), overflow="ellipsis", no_wrap=True)
    out.print(Text(f"columns  {visible(right.text)}"), overflow="ellipsis", no_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("", no_wrap=True)
    for label, width in zip(columns, widths, strict=False):
        table.add_column(Text(label), justify="right", no_wrap=True, width=width)
    for label, cosines in zip(rows, similarity.cosines.tolist(), strict=False):
        cells = [
            Text(_number(cosine).rjust(width), _style(cosine) if is_coloured else "")
            for cosine, width in zip(cosines[: len(columns)], widths, strict=False)
        ]
        table.add_row(Text(fitted(label, ROW_LABEL_CELLS)), *cells)
    out.print(table)
    for name, shown, side in (("rows", rows, left), ("columns", columns, right)):
        if len(shown) < len(side.tokens):
            part = f"the first {len(shown)} of {len(side.tokens):,} {name}"
            out.print(Text(f"{part}; --format jsonl has all"))
    shared = similarity.shared()
    if shared:
        both = ", ".join(f"{visible(piece)} {cosine:z.2f}" for piece, cosine in shared)
        out.print(Text(f"in both: {both}"), overflow="ellipsis", no_wrap=True)
    out.print(Text(f"the two sentence vectors: {similarity.sentence_cosine:z.2f}"))
    out.print()


def _number(cosine: float) -> str:
    return "-" if math.isnan(cosine) else f"{cosine:z.2f}"


def _style(cosine: float) -> str:
    """White at 0, red towards 1, blue towards -1; none for unknown words."""
    if math.isnan(cosine):
        return ""
    end = RED if cosine > 0 else BLUE
    share = min(abs(cosine), 1)
    colour = [round(light + (full - light) * share) for light, full in zip(WHITE, end, strict=True)]
    return f"{'white' if share > DARK else 'black'} on rgb({','.join(map(str, colour))})"


def _labels(side: Inspection) -> list[str]:
    return [visible(token.piece) for token in side.tokens]


def check_picture(file: Path) -> None:
    """Validate the path of an image before a model is loaded.

    Raises:
        ArgumentError: the suffix is neither .png nor .svg, or the folder does not exist.
        MissingExtraError: matplotlib is not installed.
    """
    if file.suffix.lower() not in (".png", ".svg"):
        raise ArgumentError(f"{file}: the suffix of an image must be .png or .svg")
    if not file.parent.is_dir():
        raise ArgumentError(f"{file}: the folder {file.parent} does not exist")
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", "plot", "drawing a heat map")


def draw_heat_maps(similarities: Sequence[TokenSimilarity], file: Path) -> Iterator[str]:
    """Draw heat maps below each other, as PNG or SVG by the suffix of the file.

    Yields:
        Messages about what was left out and written.

    Raises:
        ArgumentError: the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shapes = [tuple(min(n, PICTURE_TOKENS) for n in one.cosines.shape) for one in similarities]
    heights = [1.9 + 0.34 * rows for rows, _ in shapes]
    width = max(6.0, 2.6 + 0.48 * max(columns for _, columns in shapes))
    figure = Figure(figsize=(width, sum(heights)), layout="constrained")
    axes = figure.subplots(len(similarities), squeeze=False, height_ratios=heights)[:, 0]
    for axis, similarity in zip(axes, similarities, strict=True):
        _draw(axis, similarity)
    picture = io.BytesIO()
    with (
        rc_context({"svg.fonttype": "none"}),  # text in the fonts of the viewer
        warnings.catch_warnings(action="ignore"),  # of characters that the font lacks
    ):
        figure.savefig(picture, format=file.suffix[1:].lower(), dpi=150)
    try:
        file.write_bytes(picture.getvalue())
    except OSError as error:
        raise ArgumentError(f"{file}: {error.strerror}") from None
    longest = max(max(one.cosines.shape) for one in similarities)
    if longest > PICTURE_TOKENS:
        yield f"{file}: the first {PICTURE_TOKENS} tokens of at most {longest:,} are drawn"
    yield f"{file} written"


def _draw(axis: Axes, similarity: TokenSimilarity) -> None:
    cosines = similarity.cosines[:PICTURE_TOKENS, :PICTURE_TOKENS]
    known = cosines[numpy.isfinite(cosines)]
    low, high = float(known.min(initial=1)), float(known.max(initial=-1))
    image = axis.imshow(cosines, cmap="Blues", aspect="auto")
    for direction, side in ((axis.xaxis, similarity.right), (axis.yaxis, similarity.left)):
        labels = [_drawable(label, PICTURE_LABEL) for label in _labels(side)[:PICTURE_TOKENS]]
        # Dollars in texts are not formulas.
        direction.set_ticks(range(len(labels)), labels, parse_math=False)
    axis.tick_params(axis="x", rotation=45)
    for label in axis.get_xticklabels():
        label.set(horizontalalignment="right", rotation_mode="anchor")
    # Numbers fit into their cells and are ignored by the layout.
    centred: dict[str, Any] = {"ha": "center", "va": "center", "size": 8, "in_layout": False}
    for (row, column), cosine in numpy.ndenumerate(cosines):
        colour = "white" if (cosine - low) > DARK * (high - low) else "black"
        axis.text(column, row, _number(float(cosine)), color=colour, **centred)
    left, right = similarity.left, similarity.right
    title = (left.spec, f"rows: {left.text}", f"columns: {right.text}")
    axis.set_title(
        "\n".join(_drawable(visible(line), TITLE_TEXT) for line in title),
        fontsize="medium",
        parse_math=False,
    )
    axis.figure.colorbar(image, ax=axis, label="cosine")


def _drawable(label: str, characters: int) -> str:
    label = label.translate(_NO_CHARACTERS)
    return label if len(label) <= characters else f"{label[: characters - 1]}…"
