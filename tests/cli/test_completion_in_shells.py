"""TAB completion in real shells, with the scripts of `semsearch completion`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from select import select

import pytest

from semsearch import Document, Index
from tests.cli.conftest import invoke

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

#: Interactive shells without the user's settings.
COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}

#: The text typed before TAB, and the last word of the line after it. Each has a single completion,
#: since zsh completes the longest common prefix first.
LINES = {
    "semsearch que": "query",
    "semsearch query --expl": "--explain",
    "semsearch index ti": "tickets.csv",
    "semsearch query --index indexes/b": "indexes/birds",
    "semsearch query --index=indexes/m": "--index=indexes/my notes",
    'semsearch info --index "indexes/m': "indexes/my notes",
    "semsearch query --index=indexes/birds --show co": "colour",
    "semsearch query --index indexes/my\\ notes --show fir": "first author",
}

#: Control sequences of terminals.
CONTROLS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|\(.|[=>])|\r")


@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_tab_completion(program, tmp_path, monkeypatch, name):
    program(name)
    monkeypatch.chdir(tmp_path)
    fields = {"birds": {"year": 1999, "colour": "red"}, "my notes": {"first author": "Ada"}}
    for index_name, metadata in fields.items():
        with Index.create(tmp_path / "indexes" / index_name, "hashing") as index:
            index.add([Document("a", "a red bird", metadata=metadata)])
    (tmp_path / "tickets.csv").touch()
    (tmp_path / "script").write_text(invoke("completion", name).stdout)
    assert list(last_words(COMMANDS[name], LINES)) == list(LINES.values())


def last_words(shell, lines):
    """The last word of each line after TAB, in a pseudo-terminal."""
    programs = str(Path(sys.executable).parent)
    home = {"HOME": os.getcwd(), "XDG_DATA_HOME": os.getcwd(), "TERM": "xterm", "COLUMNS": "80"}  # noqa: PTH109
    ends = pty.openpty()
    # The first terminal that a session leader opens becomes its controlling terminal.
    opening = ["sh", "-c", 'exec "$@" <>"$0" >&0 2>&0', os.ttyname(ends[1])]
    process = subprocess.Popen(
        [*opening, *shell],
        env={**os.environ, **home, "PATH": f"{programs}:{os.environ['PATH']}"},
        start_new_session=True,
    )
    try:
        os.write(ends[0], b"source ./script\n")
        for number, line in enumerate(lines):
            # Ctrl-A goes to the start of the line, to print its words instead of running it.
            typed = f"{line}\t\x01printf '<%s>\\n' \necho 'that was line' {number}\n"
            os.write(ends[0], typed.encode())
            output = read_until(ends[0], rf"\nthat was line {number}\n")
            yield re.findall(r"^<(.*)>$", output, re.MULTILINE)[-1]
    finally:
        process.kill()
        process.wait()
        for end in ends:
            os.close(end)


def read_until(terminal, pattern):
    """The output up to a match of the pattern, without control sequences."""
    output = ""
    deadline = time.monotonic() + 100
    while not re.search(pattern, output):
        assert time.monotonic() < deadline, output
        if select([terminal], [], [], 1)[0]:
            output = CONTROLS.sub("", output + os.read(terminal, 1 << 16).decode(errors="replace"))
    return output
