"""Running a command in the background."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import click
from platformdirs import user_log_path

from semsearch.errors import ArgumentError

#: Lines of the log shown if the process failed to start.
LINES_SHOWN = 20


def run_in_background() -> tuple[Callable[[str], None], Path]:
    """Continue in a detached process that logs to a file.

    The original process waits until the detached one is ready, prints its message, and exits; this
    function returns only in the detached process.

    Returns:
        A function that reports readiness to the original process, with a message for the user; and
        the log file.

    Raises:
        ArgumentError: the system cannot detach processes, or the log cannot be written.
    """
    if not hasattr(os, "fork"):
        raise ArgumentError("--background needs a Unix system; run a service or task instead")
    logs = user_log_path("semsearch")
    try:
        logs.mkdir(parents=True, exist_ok=True)
        _remove_old(logs)
    except OSError as error:
        raise ArgumentError(f"cannot write a log in {logs}: {error.strerror}") from error
    reading, writing = os.pipe()
    child = os.fork()
    log = logs / f"serve-{child or os.getpid()}.log"
    if child:
        os.close(writing)
        _wait(child, reading, log)
    os.close(reading)
    os.setsid()
    written = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for opened, standard in ((nothing, 0), (written, 1), (written, 2)):
        os.dup2(opened, standard)

    def ready(message: str) -> None:
        os.write(writing, f"{message}\n".encode())
        os.close(writing)

    return ready, log


def _wait(child: int, reading: int, log: Path) -> None:
    """Print the message of the detached process, or the end of its log if it failed; then exit."""
    with os.fdopen(reading, encoding="utf-8") as stream:
        try:
            message = stream.read()
        except KeyboardInterrupt:
            os.kill(child, signal.SIGTERM)
            raise
    if message:
        click.echo(message, nl=False)
        sys.exit(0)
    os.waitpid(child, 0)
    lines = log.read_text("utf-8", "replace").splitlines()[-LINES_SHOWN:]
    click.echo("\n".join(lines) or f"Error: the process ended; see {log}", err=True)
    sys.exit(1)


def _remove_old(logs: Path) -> None:
    """Remove the logs of processes that have ended."""
    for log in logs.glob("serve-*.log"):
        number = log.stem.rpartition("-")[2]
        try:
            os.kill(int(number), 0)
        except (ValueError, PermissionError):  # another user's process
            continue
        except ProcessLookupError:
            log.unlink(missing_ok=True)
