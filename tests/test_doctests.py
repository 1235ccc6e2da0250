"""The examples in docstrings; each public name has one there, or on a page that is run."""

from __future__ import annotations

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import semsearch
from scripts.dev.examples import ROOT, blocks, pages

MODULES = [
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for file in sorted(Path(semsearch.__file__).parent.rglob("*.py"))
    if " >>> " in file.read_text("utf-8")
]
#: Packages of extras that modules need.
PACKAGES = {
    "semsearch.integrations.haystack": "haystack",
    "semsearch.integrations.langchain": "langchain_core",
}


@pytest.fixture(scope="module")
def reranker(write_bert):
    """A cross-encoder with random weights."""
    from transformers import BertForSequenceClassification

    folder = write_bert(["cat", "dozed"])
    BertForSequenceClassification.from_pretrained(folder, num_labels=1).save_pretrained(folder)
    return folder


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("module", MODULES)
def test_examples(module, package, reranker, tmp_path, monkeypatch):
    if module in PACKAGES:
        package(PACKAGES[module])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-reranker").symlink_to(reranker)
    failed, tried = doctest.testmod(import_module(module))
    assert tried
    assert not failed


def test_each_public_name_has_an_example():
    shown = "".join(
        block.body
        for page in pages()
        for block in blocks(page.read_text("utf-8"))
        if block.language == "python" and block.not_run is None
    )
    for name in set(semsearch.__all__) - {"__version__"}:
        example = inspect.getdoc(getattr(semsearch, name))
        assert ">>> " in example or re.search(rf"\b{name}\b", shown), name
