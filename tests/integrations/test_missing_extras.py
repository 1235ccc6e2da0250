"""Errors of adapters whose framework is not installed."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from semsearch.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core.documents", "langchain"),
        ("haystack", "haystack", "haystack"),
        ("mteb", "mteb.models.abs_encoder", "mteb"),
    ],
)
def test_names_the_extra(monkeypatch, module, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"semsearch.integrations.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"\[{extra}\]"):
        import_module(f"semsearch.integrations.{module}")
