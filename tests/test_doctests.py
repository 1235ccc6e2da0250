"""The examples in docstrings."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = [
    "semsearch.storage.words",
    "semsearch.explore.clusters",
    "semsearch.corpus.corpus",
    "semsearch.encoders",
    "semsearch.encoders.base",
    "semsearch.encoders.given",
    "semsearch.explore.export",
    "semsearch.index",
    "semsearch.integrations.pandas",
    "semsearch.explore.pairs",
]


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("module", MODULES)
def test_examples(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(module))
    assert tried
    assert not failed
