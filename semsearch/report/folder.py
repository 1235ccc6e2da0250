"""Where a report is written: looked at before anything is evaluated, filled at the end."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from semsearch.errors import MissingExtraError, OutputError
from semsearch.report.page import GENERATOR, Page, html

PAGE = "index.html"


def check_report(folder: Path) -> None:
    """Make the folder, and refuse what would fail after hours of evaluation.

    Raises:
        ArgumentError: it cannot be made, or holds somebody else's page.
        MissingExtraError: matplotlib or jinja2 is not installed.
    """
    for package in ("matplotlib", "jinja2"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "plot", "a report")
    page = folder / PAGE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_ours = not page.exists() or GENERATOR.encode() in page.read_bytes()
    except FileExistsError:
        raise OutputError(f"{folder}: is a file; --report names a folder") from None
    except OSError as error:
        raise OutputError(f"{folder}: {error.strerror}") from None
    if not is_ours:
        raise OutputError(f"{page} is no report of ours; name another folder")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{folder}: cannot be written")


def write_page(folder: Path, page: Page) -> Path:
    """Write a page, whole or not at all.

    Raises:
        ArgumentError: it cannot be written.
    """
    file = folder / PAGE
    unfinished = file.with_suffix(".tmp")
    try:
        unfinished.write_text(html(page), "utf-8", newline="\n")
        unfinished.replace(file)
    except OSError as error:
        raise OutputError(f"{file}: {error.strerror}") from None
    return file
