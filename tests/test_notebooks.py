"""The notebooks under docs/ run and print what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.dev.examples import same

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


@pytest.mark.usefixtures("minilm")
@pytest.mark.parametrize("name", ["contrast", "your-own-csv"])
def test_notebook(package, name):
    package("nbclient")
    package("ipykernel")
    import nbformat

    from scripts.dev.notebooks import executed

    file = FOLDER / f"{name}.ipynb"
    printed, shown = (
        "".join(
            output["text"]
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if output.get("name") == "stdout"
        )
        for notebook in (executed(file), nbformat.read(file, as_version=4))
    )
    assert same(shown, printed), printed


def test_all_notebooks_are_tested():
    assert len(list(FOLDER.glob("*.ipynb"))) == 2
