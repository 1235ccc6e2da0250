"""An adapter whose framework is not installed."""

from __future__ import annotations

import importlib
import sys

import pytest

from semsearch.errors import MissingExtraError


@pytest.mark.parametrize(
    ("module", "package"),
    [("langchain", "langchain_core"), ("haystack", "haystack"), ("mteb", "mteb")],
)
def test_names_the_extra(monkeypatch, module, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"semsearch.integrations.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"\[{module}\]"):
        importlib.import_module(f"semsearch.integrations.{module}")
