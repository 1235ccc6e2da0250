"""Reports the results of scripts/bench/peers as tables and bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from scripts.bench.results import BASELINE, BulkFigures, QueryFigures, Results, Spread
from scripts.bench.systems import HELP, OURS, messages


def show(results: Results, console: Console) -> None:
    """Print all tables."""
    for told in results.corpora:
        console.print(
            f"{told['name']}: {told['documents']:,} texts, {told['tokens']:,} tokens, "
            f"{told['megaflops_a_token']:.1f} MFLOP a token",
            highlight=False,
        )
    for told in results.corpora:
        figures = [figure for figure in results.bulk if figure.corpus == told["name"]]
        if figures:
            console.print(bulk_table(told["name"], figures))
    if results.cold:
        console.print(query_table("cold: one query, a whole process", results.cold))
    if results.warm:
        console.print(query_table("warm: one query, the index is open", results.warm))
    if results.machine:
        machine = results.machine
        flags = " ".join(machine["flags"]) or "no relevant flags"
        console.print(f"machine: {machine['cpu']}, {machine['cores']} cores, {flags}")
        console.print(machine_table(machine))


def bulk_table(corpus: str, figures: Sequence[BulkFigures]) -> Table:
    """The indexing speed on a corpus."""
    table = plain_table(
        f"bulk: {corpus}",
        "system",
        "texts/s",
        "x fastest peer in its precision",
        "texts/s without start-up",
        "x fastest peer in its precision",
        "bound, texts/s",
        "of the bound",
        "peak MiB",
    )
    for figure in figures:
        without = figure.rate_without_start
        table.add_row(
            figure.system,
            spread_text(figure.rate),
            ratio_text(figure.ratio),
            spread_text(without),
            ratio_text(figure.ratio_without_start),
            number_text(figure.bound) if figure.bound else "-",
            f"{without.median / figure.bound:.0%}" if figure.bound and without else "-",
            spread_text(figure.peak_mebibytes),
        )
    return table


def query_table(title: str, figures: Sequence[QueryFigures]) -> Table:
    """The times of queries."""
    same = any(figure.same_ten is not None for figure in figures)
    headings = ["system", "milliseconds", f"x {BASELINE}"]
    table = plain_table(title, *headings, *([f"same ten as {BASELINE}"] if same else []))
    for figure in figures:
        cells = [
            figure.system,
            spread_text(Spread(*(1000 * value for value in figure.seconds))),
            ratio_text(figure.ratio),
        ]
        if same:
            cells.append("-" if figure.same_ten is None else f"{figure.same_ten:.1%}")
        table.add_row(*cells)
    return table


def machine_table(machine: dict[str, Any]) -> Table:
    """The processor's peak rates."""
    table = plain_table("machine, peak rates", "", "")
    for precision, rate in machine["gflops"].items():
        table.add_row(f"{precision} products", f"{rate:,.0f} GFLOP/s" if rate else "-")
    table.add_row("memory, read and write", f"{machine['memory_gigabytes_per_second']:.1f} GB/s")
    return table


def plain_table(title: str, first: str, *others: str) -> Table:
    """A table whose columns, except the first, hold figures."""
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column(first, no_wrap=True)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def spread_text(values: Spread | None) -> str:
    """The median, and the lowest and highest value."""
    if values is None:
        return "-"
    if values.low == values.high:
        return number_text(values.median)
    return f"{number_text(values.median)} ({number_text(values.low)}..{number_text(values.high)})"


def number_text(number: float) -> str:
    """A number with three digits, or all digits before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def ratio_text(ratio: float | None) -> str:
    """A ratio of speeds."""
    return "-" if ratio is None else f"{ratio:.2f}x"


class Panel(NamedTuple):
    """Bars under one title."""

    title: str
    bars: list[tuple[str, Spread]]


def plot(results: Results, file: Path) -> None:
    """Draw the medians as bars, with lines from the lowest to the highest value."""
    from matplotlib.figure import Figure

    drawn = list(panels(results))
    if not drawn:
        messages.print(f"{file} is not written: neither bulk nor cold nor warm was measured")
        return
    heights = [len(panel.bars) + 1 for panel in drawn]
    figure = Figure(figsize=(8, 0.4 * sum(heights) + 0.8), layout="constrained")
    axes = figure.subplots(len(drawn), squeeze=False, height_ratios=heights)[:, 0]
    for axis, panel in zip(axes, drawn, strict=True):
        names = [name for name, _ in panel.bars]
        spreads = [values for _, values in panel.bars]
        errors = [
            [values.median - values.low for values in spreads],
            [values.high - values.median for values in spreads],
        ]
        colours = ["tab:blue" if OURS in name.split() else "tab:gray" for name in names]
        drawing = axis.barh(
            names, [values.median for values in spreads], xerr=errors, color=colours, ecolor="black"
        )
        labels = [number_text(values.median) for values in spreads]
        axis.bar_label(drawing, labels, padding=4)
        axis.margins(x=0.12)
        axis.invert_yaxis()  # in the order of the tables
        axis.set_title(panel.title, loc="left", fontsize="medium")
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)


def panels(results: Results) -> Iterator[Panel]:
    """The panels to draw."""
    for told in results.corpora:
        bars = [(one.system, one.rate) for one in results.bulk if one.corpus == told["name"]]
        if bars:
            title = f"{told['name']}: texts per second, the whole command (higher is better)"
            yield Panel(title, bars)
    for title, figures in (
        ("cold: milliseconds for a query, the whole process (lower is better)", results.cold),
        ("warm: milliseconds for a query, the index is open (lower is better)", results.warm),
    ):
        if figures:
            yield Panel(
                title,
                [
                    (one.system, Spread(*(1000 * value for value in one.seconds)))
                    for one in figures
                    if one.system != HELP.tool
                ],
            )
