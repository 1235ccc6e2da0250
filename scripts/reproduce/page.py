"""Writes the generated sections of RESULTS.md, and formats figures and tables."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from scripts.shared.machine import cores, cpu_description
from semsearch.evaluation import Difference, Interval

PACKAGES = ("openvino", "torch", "transformers", "sentence-transformers", "ir_measures", "scipy")
BEGIN, END = "<!-- {} begin: written by {} -->", "<!-- {} end -->"


def replace_section(file: Path, name: str, text: str, script: str | None = None) -> None:
    """Write a section into a file, replacing the one of that name, or at its end."""
    begin, end = BEGIN.format(name, script or f"scripts/reproduce/{name}"), END.format(name)
    section = f"{begin}\n{text.strip()}\n{end}\n"
    page = file.read_text("utf-8") if file.exists() else "# Results\n"
    before, found, rest = page.partition(begin)
    after = rest.partition(end)[2].lstrip("\n")
    parts = [before.rstrip() + "\n", section, after] if found else [page.rstrip() + "\n", section]
    file.write_text("\n".join(part for part in parts if part), "utf-8")


def provenance(*arguments: str) -> str:
    """The date, command, versions and processor of a measurement; by default, of this run."""
    name, *options = arguments or sys.argv[1:]
    command = [f"scripts/reproduce/{name}", *options]
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    day = datetime.now(UTC).date()
    return (
        f"Measured on {day} by `{shlex.join(command)}` with Python {platform.python_version()}, "
        f"{versions}, on "
        f"{cores()} cores of {cpu_description()['cpu']}."
    )


def short(system: str) -> str:
    """A system's name without the folders of a path."""
    prefix, mark, path = system.rpartition("glove:")
    return f"{prefix}{mark}{Path(path).name}" if mark else system


def interval(found: Interval) -> str:
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def difference(found: Difference) -> str:
    relation = "" if found.p_shown[0] in "<≤" else "= "
    return f"{found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}], p {relation}{found.p_shown}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
