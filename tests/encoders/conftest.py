"""Tiny models with random weights."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def plain_bert(write_bert):
    """A folder with a tiny BERT, as transformers writes it."""
    return write_bert([*"abcdef", "query", ":", "document"])
