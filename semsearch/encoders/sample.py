"""The texts of the sample corpus, for calibration."""

from __future__ import annotations

import csv
import io
from importlib.resources import files


def sample_texts() -> list[str]:
    """The texts of the sample corpus, in order."""
    sample = (files("semsearch.corpus") / "sample" / "notes.csv").read_text("utf-8")
    return [row["text"] for row in csv.DictReader(io.StringIO(sample))]
