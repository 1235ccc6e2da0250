"""The texts of the sample corpus, for what is fitted on texts of some kind."""

from __future__ import annotations

import csv
import io
from importlib.resources import files


def sample_texts() -> list[str]:
    """The texts of the notes that come with the package, in their order."""
    sample = (files("semsearch") / "sample" / "notes.csv").read_text("utf-8")
    return [row["text"] for row in csv.DictReader(io.StringIO(sample))]
