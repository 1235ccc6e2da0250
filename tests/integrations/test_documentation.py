"""The examples of docs/integrations.md run."""

from __future__ import annotations

import io
import re
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from semsearch import Index

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for section in DOCUMENT.read_text("utf-8").split("\n## ")
}


@pytest.mark.parametrize(
    ("section", "package"), [("LangChain", "langchain_core"), ("Haystack", "haystack")]
)
def test_examples(section, package, tmp_path, monkeypatch):
    if find_spec(package) is None:  # CI has it: the adapter's own tests require it
        pytest.skip(f"{package} is not installed (scripts/integration installs it)")
    monkeypatch.chdir(tmp_path)
    Index.create("indexes/notes", "hashing").close()  # without a model
    [code] = SECTIONS[section]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    store = names["store"]
    assert [document.text for document in store.index] == ["The cat dozed on the radiator."]
    store.index.close()


def test_example_of_pandas():
    [code] = SECTIONS["pandas"]
    names = {}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    assert len(names["found"]) == 1


def test_example_of_a_reader():
    [code] = [code for code in SECTIONS["Plugins"] if "read_bib" in code]
    names = {"parse": lambda stream: [{"id": "a", "title": "", "text": stream.read()}]}
    exec(compile(code, DOCUMENT.name, "exec"), names)  # noqa: S102 - our own
    table = names["read_bib"](SimpleNamespace(name="x.bib", stream=io.StringIO("a bird")))
    [(place, cells)] = table.rows
    assert (place, cells["text"]) == ("x.bib, entry 1", "a bird")


def test_example_of_sentence_transformers():
    [code] = SECTIONS["sentence-transformers"]
    names = {}
    exec(compile(code.replace("minilm", "hashing"), DOCUMENT.name, "exec"), names)  # noqa: S102
    assert sorted(names["pairs"][0][1:]) == [0, 1]
