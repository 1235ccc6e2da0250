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
    _open_streams()
    status: object
    try:
        status = _status()
    except SystemExit as leaving:
        status = leaving.code
    except KeyboardInterrupt:  # while importing
        os.write(2, b"\nAborted!\n")
        status = 130
    except OSError as error:  # of the output; errors of other files are reported by the command
        _report(error)
        status = 1
    try:
        if status is not None and not isinstance(status, int):  # the message of sys.exit(message)
            sys.stderr.write(f"{status}\n")
            status = 1
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
            stream.flush()
    except OSError as error:  # a full disk, or a closed pipe
        _report(error)
        status = 1
    os._exit(status if isinstance(status, int) else 0)


def _open_streams() -> None:
    """Replace closed standard streams, and let the others write any character.

    Files are written in UTF-8, as `semsearch index` reads them; a terminal shows escapes instead of
    characters that its encoding lacks.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # the lowest free descriptor is its own
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        chosen = stream.isatty() or "PYTHONIOENCODING" in os.environ
        stream.reconfigure(  # type: ignore[union-attr]
            encoding=None if chosen else "utf-8", errors="backslashreplace"
        )


def _status() -> object:
    from semsearch.cli.command import main

    return main.main(prog_name="semsearch")


def _report(error: OSError) -> None:
    from contextlib import suppress

    with suppress(OSError):
        os.write(2, f"Error: the output cannot be written: {error.strerror}\n".encode())
