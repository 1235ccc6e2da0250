"""The command line: parse, call, render. Commands are imported when they are called."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from semsearch.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main", "run"]


def run() -> NoReturn:
    """Run the program `semsearch`, and exit without Python's teardown.

    The teardown of imported modules would take a quarter of the time of a query.
    """
    gc.set_threshold(200_000)  # imports create many objects and delete few
    if sys.argv[1:2] != ["train"]:  # whose many short steps spinning threads make faster
        # FAISS's waiting threads sleep: spinning takes the cores of others, and of their own work.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
        # Files are in UTF-8; terminals get escapes for characters that their encoding lacks.
        chosen = stream.isatty() or "PYTHONIOENCODING" in os.environ
        stream.reconfigure(encoding=None if chosen else "utf-8", errors="backslashreplace")
    status: object = 0
    try:
        main.main(prog_name="semsearch")
    except SystemExit as leaving:
        status = leaving.code
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))
