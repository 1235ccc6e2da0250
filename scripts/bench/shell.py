"""`semsearch query` from the shell, without and with a running service; milliseconds.

Whole processes are timed, in turn, so that a slow moment of the machine affects all of them.
Python's own start-up, which no such program can avoid, is timed too. Both ways must print the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scripts.bench.systems import semsearch

QUERY = "how do I soothe my mouth after eating something too spicy"
FORMATS = ("table", "jsonl")


def main() -> int:
    """Measure, and print the table; exit status 1 if the two ways print different output."""
    arguments = parsed()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        without, with_service = (
            {**os.environ, "XDG_RUNTIME_DIR": f"{name}/{kind}"} for kind in "01"
        )
        Path(with_service["XDG_RUNTIME_DIR"]).mkdir()
        index = arguments.index or sample_index(Path(name))
        serve = [*semsearch(), "serve", "--index", str(index)]
        subprocess.run([*serve, "--background", "--port", "0"], env=with_service, check=True)
        try:
            return measure(arguments, index, without, with_service)
        finally:
            subprocess.run([*serve, "--stop"], env=with_service, check=True)


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", type=Path, help="the index to search (one of the sample corpus)")
    parser.add_argument("--query", default=QUERY, help="what to search for")
    parser.add_argument("--repeats", type=int, default=20, help="number of rounds (20)")
    return parser.parse_args()


def sample_index(folder: Path) -> Path:
    """An index of the corpus that comes with semsearch."""
    index = folder / "notes"
    command = [*semsearch(), "index", "--sample", "--index", str(index)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return index


def measure(
    arguments: argparse.Namespace,
    index: Path,
    without: Mapping[str, str],
    with_service: Mapping[str, str],
) -> int:
    """Time everything in turn, and print medians with the extremes."""
    python = [sys.executable, "-c"]
    commands: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {
        "python -c pass": ([*python, "pass"], without),
        "python -c 'import click'": ([*python, "import click"], without),
    }
    for format_name in FORMATS:
        query = [*semsearch(), "query", arguments.query, "--index", str(index)]
        query += ["--format", format_name]
        commands[f"query --format {format_name}, no service"] = query, without
        commands[f"query --format {format_name}, by a service"] = query, with_service
    times: dict[str, list[float]] = {name: [] for name in commands}
    printed: dict[str, bytes] = {}
    for _ in range(arguments.repeats + 1):
        for name, (command, environment) in commands.items():
            started = time.perf_counter()
            done = subprocess.run(command, env=environment, capture_output=True, check=True)
            times[name].append(1000 * (time.perf_counter() - started))
            printed[name] = done.stdout + done.stderr
    table = Table(title="milliseconds of a whole process", title_justify="left")
    for heading in ("", "median", "least", "most"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, taken in times.items():
        counted = taken[1:]  # the first round reads the files from disk
        figures = statistics.median(counted), min(counted), max(counted)
        table.add_row(name, *(f"{figure:.0f}" for figure in figures))
    (Console() if sys.stdout.isatty() else Console(width=120)).print(table)
    outputs = [printed[name] for name in commands if name.startswith("query")]
    same = all(outputs[place] == outputs[place + 1] for place in range(0, len(outputs), 2))
    print("both ways print the same bytes" if same else "the two ways print DIFFERENT bytes")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
