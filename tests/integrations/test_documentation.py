"""The examples of docs/integrations.md run."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from semsearch import Document, Index, export_index

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for section in DOCUMENT.read_text("utf-8").split("\n## ")
}


@pytest.mark.parametrize(
    ("section", "package"), [("LangChain", "langchain_core"), ("Haystack", "haystack")]
)
def test_examples(section, package, tmp_path, monkeypatch):
    if find_spec(package) is None:  # CI has it: the adapter's own tests ask for it
        pytest.skip(f"{package} is not installed (scripts/integration installs it)")
    monkeypatch.chdir(tmp_path)
    Index.create("indexes/notes", "hashing").close()  # without a model
    [code] = SECTIONS[section]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    store = names["store"]
    assert [document.text for document in Index.open("indexes/notes")] == [
        "The cat dozed on the radiator."
    ]
    store.index.close()


def test_example_of_pandas():
    [code] = SECTIONS["pandas"]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    assert len(names["found"]) == 1


def test_example_of_faiss(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with Index.create("index", "hashing") as index:
        index.add([Document("a", "a heist goes wrong"), Document("b", "a bird")])
        export_index(index, "films.faiss")
    [code] = [code for code in SECTIONS["Export"] if "faiss" in code]
    exec(compile(code.replace("minilm", "hashing"), DOCUMENT.name, "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "['a', 'b']\n"
