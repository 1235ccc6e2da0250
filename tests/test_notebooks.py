"""The notebooks under docs/ run and print what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.dev.examples import same

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


@pytest.mark.nightly
@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.ipynb")), ids=lambda file: file.stem)
def test_notebook(package, file):
    package("nbclient")
    package("ipykernel")
    import nbformat

    from scripts.dev.notebooks import executed

    shown, run = nbformat.read(file, as_version=4), executed(file)
    assert same(printed(shown), printed(run)), printed(run)
    assert kinds(run) == kinds(shown)


def printed(notebook):
    """What its cells print; tables are left out: groups and scores differ between processors."""
    return "".join(output["text"] for output in outputs(notebook) if output.get("name") == "stdout")


def kinds(notebook):
    """The formats that each of its cells shows."""
    return [
        [sorted(output["data"]) for output in cell.get("outputs", []) if "data" in output]
        for cell in notebook.cells
    ]


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]
