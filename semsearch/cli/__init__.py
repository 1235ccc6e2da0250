"""The command line: parse, call, render, with one module per command, imported when used."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # type checkers treat it like the one of typing, which is slow to import
if TYPE_CHECKING:
    from typing import NoReturn

    from semsearch.cli.command import COMMANDS, main

__all__ = ["COMMANDS", "main", "run"]


def __getattr__(name: str) -> object:
    if name not in ("COMMANDS", "main"):
        raise AttributeError(f"module 'semsearch.cli' has no attribute '{name}'")
    from semsearch.cli import command

    return getattr(command, name)


def run() -> NoReturn:
    """Run the program `semsearch`, and exit without Python's teardown.

    The teardown of imported modules would take a quarter of the time of a query.
    """
    gc.set_threshold(200_000)  # imports create many objects and delete few
    if sys.argv[1:2] != ["train"]:  # whose many short steps spinning threads make faster
        # FAISS's waiting threads sleep: spinning takes the cores of others, and of their own work.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    _write_any_character()
    status: object = 0
    try:
        from semsearch.cli.command import main

        main.main(prog_name="semsearch")
    except SystemExit as leaving:
        status = leaving.code
    except KeyboardInterrupt:  # while importing
        os.write(2, b"\nAborted!\n")
        status = 130
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
            stream.flush()
    except OSError as error:  # a full disk, or a closed pipe
        os.write(2, f"Error: the output cannot be written: {error.strerror}\n".encode())
        status = 1
    os._exit(status if isinstance(status, int) else int(status is not None))


def _write_any_character() -> None:
    """Write files in UTF-8, and escapes to a terminal whose encoding lacks a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
            continue
        chosen = stream.isatty() or "PYTHONIOENCODING" in os.environ
        stream.reconfigure(encoding=None if chosen else "utf-8", errors="backslashreplace")
