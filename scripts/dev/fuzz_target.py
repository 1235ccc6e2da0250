"""Coverage-guided fuzzing: whatever the input, only semsearch's own errors may be raised.

The options are libFuzzer's. It stops at the first other error and saves the input that caused it,
as crash-…; `scripts/dev/fuzz TARGET crash-…` reproduces the error.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import atheris

with atheris.instrument_imports(include=["semsearch"]):
    from semsearch import Corpus, Document, Index
    from semsearch.corpus import conversion
    from semsearch.errors import SemsearchError
    from semsearch.storage.interface import Selection, parse_filter

SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt", ".csv.gz")
SUFFIXES += (".md", ".html", ".pdf", ".xlsx", ".docx", ".pptx")
#: Limits of an input and of memory; a later option of the command takes precedence.
DEFAULTS = ["-max_len=4096", "-rss_limit_mb=4096", "-max_total_time=60"]

Target = Callable[[bytes], None]


def fuzz_filters(folder: Path) -> Target:
    """Filter expressions, through the parser and SQLite."""
    index = Index.create(folder / "index", ["hashing:8"])
    index.add([Document("a", "a text", metadata={"year": 1990, "genres": ["Drama"], "b": True})])

    def run(data: bytes) -> None:
        with index.read() as state:
            condition = parse_filter(state, data.decode("utf-8", "replace"))
            state.ids(Selection(condition=condition))

    return run


def fuzz_corpus(folder: Path) -> Target:
    """Files of every format; the first byte selects the format."""
    # In this process, whose coverage counts.
    here: Any = lambda function, *arguments: function(*arguments)  # noqa: E731
    conversion.converter.run = here  # type: ignore[method-assign]

    def run(data: bytes) -> None:
        suffix = SUFFIXES[data[0] % len(SUFFIXES)] if data else ".csv"
        file = folder / f"corpus{suffix}"
        file.write_bytes(data[1:])
        for _ in Corpus(file, on_bad_row=lambda error: None):
            pass

    return run


TARGETS = {"filters": fuzz_filters, "corpus": fuzz_corpus}


def main() -> None:
    """Run one target; the process ends with libFuzzer's exit status."""
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: scripts/dev/fuzz {'|'.join(TARGETS)} [LIBFUZZER-OPTIONS]")
    name, *options = sys.argv[1:]
    with TemporaryDirectory() as folder:
        target = TARGETS[name](Path(folder))

        def run(data: bytes) -> None:
            with contextlib.suppress(SemsearchError):
                target(data)

        atheris.Setup([sys.argv[0], *DEFAULTS, *options], run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
