"""Runs the notebooks under docs/notebooks/, and writes their output into them."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"


def executed(file: Path) -> nbformat.NotebookNode:
    """A notebook after all its cells have run in an empty folder.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = nbformat.read(file, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, resources=resources, record_timing=False).execute()
    return notebook


def main() -> None:
    """Run all notebooks."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for file in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(executed(file), file)
        print(file.name)


if __name__ == "__main__":
    main()
