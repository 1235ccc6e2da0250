"""Draws docs/terminal.svg: the commands below, run in a terminal, and their output."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import shlex
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from scripts.dev.examples import anywhere

PICTURE = Path(__file__).parents[2] / "docs" / "terminal.svg"
COLUMNS = 84
COMMANDS = [
    "semsearch index --sample",
    'semsearch query "how do I soothe my mouth after eating something too spicy" -k 2',
    'semsearch query "python" -k 1 --where "topic = \'software\' and year < 2010"',
]


def main() -> None:
    screen = Console(record=True, width=COLUMNS, file=io.StringIO())
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        in_terminal("semsearch index --sample --index warm")  # converts the model once
        for command in COMMANDS:
            screen.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            screen.print(Text.from_ansi(anywhere(in_terminal(command))))
    # Otherwise, each picture would have ids of its own, and fonts from another host.
    drawn = screen.export_svg(title="semsearch", theme=DIMMED_MONOKAI, unique_id="semsearch")
    start, end = drawn.index("@font-face"), drawn.rindex("@font-face")
    end = drawn.index("}", end) + 1
    PICTURE.write_text(drawn[:start] + drawn[end:].lstrip(), "utf-8")
    print(PICTURE)


def in_terminal(command: str) -> str:
    """The output of a command on a terminal, with progress bars in their last state."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        arguments = shlex.split(command)[1:]
        os.execv(sys.executable, [sys.executable, "-m", "semsearch", *arguments])  # noqa: S606
    printed = b""
    try:
        while block := os.read(terminal, 65_536):
            printed += block
    except OSError:  # how Linux reports that the other end is closed
        pass
    os.waitpid(child, 0)
    lines = printed.decode().replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1] for line in lines)


if __name__ == "__main__":
    main()
