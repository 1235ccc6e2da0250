"""The pictures of README.md: commands in a terminal, and the page of `semsearch serve`."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import shlex
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from scripts.dev.examples import anywhere
from scripts.shared.frame import SEMSEARCH, run, served

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS = 84
QUERY = "how do I soothe my mouth after eating something too spicy"
COMMANDS = [
    "semsearch index --sample",
    f'semsearch query "{QUERY}" -k 2',
    'semsearch query "python" -k 1 --where "topic = \'software\' and year < 2010"',
]


def main() -> None:
    with TemporaryDirectory() as folder, contextlib.chdir(folder):
        run([*SEMSEARCH, "index", "--sample", "--index", "warm"])  # converts the model once
        draw_terminal(DOCS / "terminal.svg")
        run([*SEMSEARCH, "map", "--index", "warm"])
        with served(Path("warm")) as address:
            address += f"/?{urlencode({'query': QUERY, 'view': 'map'})}"
            photograph(address, DOCS / "page.png", (1400, 860), ".hit mark")
            photograph(address.partition("?")[0], DOCS / "phone.png", (390, 844), ".card")


def draw_terminal(picture: Path) -> None:
    """Draw the commands and their output."""
    screen = Console(record=True, width=COLUMNS, file=io.StringIO())
    for command in COMMANDS:
        screen.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        screen.print(Text.from_ansi(anywhere(in_terminal(command))))
    # Otherwise, each picture would have ids of its own, and fonts from another host.
    drawn = screen.export_svg(title="semsearch", theme=DIMMED_MONOKAI, unique_id="semsearch")
    start, end = drawn.index("@font-face"), drawn.rindex("@font-face")
    end = drawn.index("}", end) + 1
    picture.write_text(drawn[:start] + drawn[end:].lstrip(), "utf-8")


def in_terminal(command: str) -> str:
    """The output of a command on a terminal, with progress bars in their last state."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
        arguments = shlex.split(command)[1:]
        os.execv(sys.executable, [sys.executable, "-m", "semsearch", *arguments])  # noqa: S606
    printed = b""
    with contextlib.suppress(OSError):  # how Linux reports that the other end is closed
        while block := os.read(terminal, 65_536):
            printed += block
    os.waitpid(child, 0)
    lines = printed.decode().replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1] for line in lines)


def photograph(address: str, picture: Path, size: tuple[int, int], shown: str) -> None:
    """Take a screenshot of a page once an element is shown."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": size[0], "height": size[1]})
        page.goto(address, wait_until="domcontentloaded")
        page.locator(shown).first.wait_for()
        page.wait_for_timeout(500)  # until the marks of the hits have been drawn
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
