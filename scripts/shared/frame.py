"""The frame of the benchmarks: commands, rounds, medians, tables, curves and JSON.

A benchmark measures its systems in turn, and reports tables whose rows are dictionaries:

    arguments = new_parser("scripts/bench/x", __doc__).parse_args()
    measured = in_turn("warm", ["ours", "theirs"], arguments.repeats, seconds_of)
    rows = [{"system": name, "s": spread(values)} for name, values in measured.items()]
    report(arguments, [Table("one query", rows)])

Systems take turns, so that a slow minute of the machine affects all of them, and each round begins
with another one. A figure is the median of the rounds, with the lowest and the highest value.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeVar

import rich.table
from rich.console import Console

SEMSEARCH = [str(Path(sys.executable).with_name("semsearch"))]
#: Flags of /proc/cpuinfo that matter to the products of matrices.
FLAGS = {"avx2", "avx512f", "avx512_bf16", "avx512_vnni", "avx_vnni", "amx_bf16", "amx_int8"}

messages = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
System = TypeVar("System")
Measured = TypeVar("Measured")


class Spread(NamedTuple):
    """The median and the range of a figure over all rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        middle, low, high = map(number_text, self)
        return middle if low == high else f"{middle} ({low}..{high})"


class Table(NamedTuple):
    """A table: rows of figures by heading."""

    title: str
    rows: Sequence[Mapping[str, Any]]


class Finished(NamedTuple):
    """A finished command."""

    seconds: float
    peak_mebibytes: float
    output: str


class CommandFailedError(Exception):
    """A command exited with a non-zero status; the message is its last on stderr."""


def new_parser(name: str, description: str | None, *, repeats: int = 3) -> argparse.ArgumentParser:
    """The options that benchmarks share."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog=name, description=description, formatter_class=form)
    add = parser.add_argument
    add("--repeats", type=positive, default=repeats, help=f"number of rounds ({repeats})")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    return parser


def some_of(known: Sequence[str]) -> Callable[[str], list[str]]:
    """A parser of comma-separated names."""

    def read(text: str) -> list[str]:
        names = text.split(",")
        if unknown := set(names) - set(known):
            raise argparse.ArgumentTypeError(f"no {min(unknown)!r} among {','.join(known)}")
        return names

    return read


def positive(text: str) -> int:
    """Parse a positive integer."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def data_folder() -> Path:
    """The folder of published data sets."""
    if not os.environ.get("SEMSEARCH_DATA"):
        sys.exit("SEMSEARCH_DATA must name a folder of published data sets")
    return Path(os.environ["SEMSEARCH_DATA"])


def in_turn(
    title: str, systems: Sequence[System], repeats: int, measure: Callable[[System], Measured]
) -> dict[System, list[Measured]]:
    """What `measure` returned for each system in each round; systems that fail are left out."""
    measured: dict[System, list[Measured]] = {system: [] for system in systems}
    for number in range(repeats):
        start = number % max(len(systems), 1)
        for system in [*systems[start:], *systems[:start]]:
            if system not in measured:
                continue
            began = time.perf_counter()
            try:
                measured[system].append(measure(system))
            except (CommandFailedError, OSError) as error:
                del measured[system]
                messages.print(f"{system} failed and is left out: {error}")
            else:
                seconds = time.perf_counter() - began
                messages.print(f"{title} {number + 1}/{repeats}: {system} {seconds:.1f} s")
    return measured


def run(command: Sequence[object], **variables: str) -> Finished:
    """Run a command without network and GPU.

    The kernel reports the peak memory, of the process and of those that it waited for. Linux
    includes the memory of this process when it started the command, so it must stay small.

    Raises:
        CommandFailedError: its exit status is not 0.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        started = time.perf_counter()
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=errors, env=environment(**variables)
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        printed, told = (one.read().decode("utf-8", "replace") for one in (output, errors))
    if process.returncode:
        said = told.strip().splitlines() or ["no message"]
        raise CommandFailedError(f"{said[-1].strip()} (exit status {process.returncode})")
    unit = 1 if sys.platform == "darwin" else 1024
    return Finished(seconds, usage.ru_maxrss * unit / 2**20, printed)


def environment(**more: str) -> dict[str, str]:
    """The variables of measured processes."""
    fixed = {"HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    found = {**os.environ, **fixed, "CUDA_VISIBLE_DEVICES": "", **more}
    found.pop("PYTHONDONTWRITEBYTECODE", None)  # or each run compiles what is not installed
    return found


@contextmanager
def served(index: Path, *options: str) -> Iterator[str]:
    """Run `semsearch serve`; yields its address."""
    command = [*SEMSEARCH, "serve", "--index", str(index), "--port", "0", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        try:
            words = (word for line in service.stderr or () for word in line.split())
            yield next(word for word in words if word.startswith("http://"))
        finally:
            service.terminate()


def spread(values: Sequence[float]) -> Spread:
    """The median and the range of values."""
    return Spread(statistics.median(values), min(values), max(values))


def milliseconds(seconds: Sequence[float]) -> Spread:
    """The median and the range of times in seconds."""
    return spread([1000 * value for value in seconds])


def report(arguments: argparse.Namespace, tables: Sequence[Table]) -> None:
    """Print tables below the processor's name, and write them for `--json`."""
    machine = processor()
    console = Console(width=None if sys.stdout.isatty() else 140, highlight=False)
    console.print(f"{machine['name']}, {machine['cores']} cores, {' '.join(machine['flags'])}")
    for one in tables:
        console.print(f"\n{one.title}", style="bold")
        console.print(rich_table(one))
    if arguments.json:
        figures = {one.title: one.rows for one in tables}
        record = {"options": vars(arguments), "machine": machine, "figures": figures}
        arguments.json.write_text(json.dumps(record, indent=2, default=str) + "\n", "utf-8")


def processor() -> dict[str, Any]:
    """The processor's name, the cores that this process may use, and the relevant flags."""
    name, flags = platform.processor() or platform.machine(), set()
    file = Path("/proc/cpuinfo")
    if file.exists():
        lines = file.read_text("utf-8").partition("\n\n")[0].splitlines()
        fields = dict((part.strip() for part in line.partition(":")[::2]) for line in lines)
        name, flags = fields.get("model name", name), set(fields.get("flags", "").split())
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
    return {"name": name, "cores": cores, "flags": sorted(FLAGS & flags)}


def rich_table(one: Table) -> rich.table.Table:
    """A table for the terminal; a figure that a row lacks is a dash."""
    drawn = rich.table.Table()
    headings = list(dict.fromkeys(heading for row in one.rows for heading in row))
    for place, heading in enumerate(headings):
        drawn.add_column(heading, justify="right" if place else "left", no_wrap=not place)
    for row in one.rows:
        values = [row.get(heading, "-") for heading in headings]
        cells = [number_text(value) if isinstance(value, float) else value for value in values]
        drawn.add_row(*("-" if value is None else str(value) for value in cells))
    return drawn


def number_text(number: float) -> str:
    """A number with three digits, or all digits before the point."""
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def plot(
    columns: Mapping[int, Mapping[str, float]],
    panels: Mapping[str, Mapping[str, str]],
    label: str,
    file: Path,
) -> None:
    """Draw figures as curves, on logarithmic scales.

    Args:
        columns: figures by name, for each place on the horizontal axis.
        panels: for each title, the names of its figures with their labels.
        label: that of the horizontal axis.
        file: the picture, .png or .svg.
    """
    import pandas
    from matplotlib.figure import Figure

    found = pandas.DataFrame(columns).T
    figure = Figure(figsize=(13, 4), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, names) in zip(axes, panels.items(), strict=True):
        shown = found.reindex(columns=list(names)).rename(columns=dict(names))
        shown.plot(ax=axis, loglog=True, marker="o", grid=True, title=title, xlabel=label)
    figure.savefig(file, dpi=150)
