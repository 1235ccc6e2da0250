"""Errors of adapters whose framework is not installed."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from semsearch.errors import MissingExtraError


@pytest.mark.parametrize(
    ("extra", "package"),
    [("langchain", "langchain_core.documents"), ("haystack", "haystack"), ("mteb", "mteb.types")],
)
def test_names_the_extra(monkeypatch, extra, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"semsearch.integrations.{extra}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
        import_module(f"semsearch.integrations.{extra}")
