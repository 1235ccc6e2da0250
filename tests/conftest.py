"""What several tests need: the real data, the real encoder, an encoder that knows no model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from semsearch.encoders import load_encoder

os.environ["HF_HUB_OFFLINE"] = "1"  # tests run without a network, and say so to the hub's client


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published data sets that SEMSEARCH_DATA names."""
    folder = os.environ.get("SEMSEARCH_DATA")
    if folder is None:
        if os.environ.get("SEMSEARCH_DATA_REQUIRED"):
            pytest.fail("SEMSEARCH_DATA_REQUIRED is set, but not SEMSEARCH_DATA")
        pytest.skip("SEMSEARCH_DATA names no folder of published data sets")
    return Path(folder).resolve(strict=True)


@pytest.fixture(scope="session")
def minilm():
    """The bundled encoder, loaded once."""
    return load_encoder("minilm", device="cpu")


@pytest.fixture
def hashing():
    """An encoder without a model."""
    return load_encoder("hashing")
