"""Skips the tests of a framework that is not installed, unless CI requires them."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def needs(package: str) -> None:
    """Skip the calling module if a package is missing; in CI, its import then fails."""
    if find_spec(package) is None and not os.environ.get("SEMSEARCH_INTEGRATION_REQUIRED"):
        reason = f"{package} is not installed (scripts/integration installs it)"
        pytest.skip(reason, allow_module_level=True)
