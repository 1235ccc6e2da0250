"""Errors of adapters whose framework is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("haystack", "haystack", "haystack"),
        ("mteb", "mteb", "mteb"),
    ],
)
def test_names_the_extra(tmp_path, module, package, extra):
    code = f"""
import sys
sys.modules["{package}"] = None
try:
    import semsearch.integrations.{module}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingExtraError ")
    assert f"[{extra}]" in done.stdout
