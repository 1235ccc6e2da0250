"""Where published data sets lie."""

from __future__ import annotations

import os
from pathlib import Path

from semsearch.errors import DatasetNotFoundError

__all__ = ["data_file"]


def data_file(name: str) -> Path:
    """A file of a published data set, in the folder that SEMSEARCH_DATA names.

    Args:
        name: its path in there, such as ``sts/stsbenchmark/sts-test.csv``.

    Raises:
        DatasetNotFoundError: the variable is not set, or the folder has no such file.
    """
    folder = os.environ.get("SEMSEARCH_DATA")
    if not folder:
        raise DatasetNotFoundError(
            f"{name} is needed: set SEMSEARCH_DATA to a folder that has this data set"
        )
    file = Path(folder) / name
    if not file.is_file():
        raise DatasetNotFoundError(f"SEMSEARCH_DATA names {folder}, which has no {name}")
    return file
