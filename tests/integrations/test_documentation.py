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
