"""The examples of docs/integrations.md run."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from semsearch import Index

DOCUMENT = Path(__file__).parents[2] / "docs" / "integrations.md"
SECTIONS = {
    section.partition("\n")[0]: re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    for section in DOCUMENT.read_text("utf-8").split("\n## ")
}


def run(section):
    """The names that a section's example defines, without a model."""
    names = {}
    [code] = SECTIONS[section]
    exec(compile(code.replace("minilm", "hashing"), DOCUMENT.name, "exec"), names)  # noqa: S102
    return names


@pytest.mark.parametrize(
    ("section", "package"), [("LangChain", "langchain_core"), ("Haystack", "haystack")]
)
def test_stores(section, package, tmp_path, monkeypatch):
    if find_spec(package) is None:  # CI has it: the adapter's own tests require it
        pytest.skip(f"{package} is not installed (scripts/integration installs it)")
    monkeypatch.chdir(tmp_path)
    Index.create("indexes/notes", "hashing").close()
    with run(section)["store"].index as index:
        assert [document.text for document in index] == ["The cat dozed on the radiator."]


def test_others():
    assert len(run("pandas")["found"]) == 1
    assert sorted(run("sentence-transformers")["pairs"][0][1:]) == [0, 1]
