"""The command line: parse, call, render. One file a command; none is imported before it is used.

Neither is click: a query that a running service answers takes less time than its import.
"""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # type checkers take it for the one of typing, which takes long to import
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
    """The program `semsearch`: the command, and then the end of the process at once.

    Python would first take apart what it has imported, which takes a quarter as long as a query.
    """
    gc.set_threshold(200_000)  # imports make much and drop little: collecting so often is in vain
    status: object
    try:
        status = _status()
    except SystemExit as leaving:
        status = leaving.code
    except KeyboardInterrupt:  # while it was waiting for a service, or importing
        os.write(2, b"\nAborted!\n")
        status = 1
    except OSError as error:  # of the output; files of ours raise errors of ours
        _tell(error)
        status = 1
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it was closed
            stream.flush()
    except OSError as error:  # a full disk, or a reader that has gone
        _tell(error)
        status = 1
    os._exit(status if isinstance(status, int) else 0)


def _status() -> object:
    if sys.argv[1:2] == ["query"]:
        from semsearch.cli.service_client import print_answer

        if print_answer(sys.argv[2:]):
            return 0
    from semsearch.cli.command import main

    return main.main(prog_name="semsearch")


def _tell(error: OSError) -> None:
    from contextlib import suppress  # seldom needed

    with suppress(OSError):
        os.write(2, f"Error: the output cannot be written: {error.strerror}\n".encode())
