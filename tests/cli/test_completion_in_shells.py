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

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

pytestmark = pytest.mark.slow

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
    "semsearch index --encoder mod": "model",
    "semsearch query --queries ti": "tickets.csv",
    "semsearch query --index indexes/b": "indexes/birds",
    "semsearch query --index=indexes/b": "--index=indexes/birds",
    "semsearch query --index indexes/m": "indexes/my notes",
    "semsearch query --index=indexes/m": "--index=indexes/my notes",
    'semsearch info --index "indexes/m': "indexes/my notes",
    "semsearch query --index indexes/birds --space h": "hashing",
    "semsearch query --index=indexes/birds --show co": "colour",
    "semsearch query --index indexes/my\\ notes --show fir": "first author",
}

END = "that was line"

#: Control sequences of terminals.
CONTROLS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|\(.|[=>])|\r")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    fields = {"birds": {"year": 1999, "colour": "red"}, "my notes": {"first author": "Ada"}}
    for name, metadata in fields.items():
        with Index.create(folder / "indexes" / name, "hashing") as index:
            index.add([Document("a", "a red bird", metadata=metadata)])
    (folder / "tickets.csv").touch()
    (folder / "model").touch()
    return folder


class Shell:
    """An interactive shell in a pseudo-terminal."""

    def __init__(self, command, folder):
        programs = str(Path(sys.executable).parent)
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "TERM": "xterm", "COLUMNS": "80"}
        self._ends = pty.openpty()
        self._terminal = self._ends[0]
        self._output = ""
        # The first terminal that a session leader opens becomes its controlling terminal.
        opening = ["sh", "-c", 'exec "$@" <>"$0" >&0 2>&0', os.ttyname(self._ends[1])]
        self._process = subprocess.Popen(
            [*opening, *command],
            cwd=folder,
            env={**os.environ, **home, "PATH": f"{programs}:{os.environ['PATH']}"},
            start_new_session=True,
        )

    def type(self, keys):
        os.write(self._terminal, keys.encode())

    def read_until(self, pattern):
        """The output up to a match of the pattern, without control sequences."""
        deadline = time.monotonic() + 100
        while not (found := re.search(pattern, self._output)):
            assert time.monotonic() < deadline, self._output
            if select([self._terminal], [], [], 1)[0]:
                self._output += os.read(self._terminal, 1 << 16).decode(errors="replace")
                self._output = CONTROLS.sub("", self._output)
        output, self._output = self._output[: found.end()], self._output[found.end() :]
        return output

    def end(self):
        self._process.kill()
        self._process.wait()
        for end in self._ends:
            os.close(end)


@pytest.mark.parametrize("name", COMMANDS)
def test_tab_completion(program, folder, name):
    program(name)
    script = subprocess.run(
        [sys.executable, "-m", "semsearch", "completion", name],
        check=True,
        capture_output=True,
        text=True,
    )
    (folder / f"script.{name}").write_text(script.stdout)
    shell = Shell(COMMANDS[name], folder)
    try:
        shell.type(f"source ./script.{name}\n")
        completed = {}
        for number, line in enumerate(LINES):
            # Ctrl-A goes to the start of the line, to print its words instead of running it.
            shell.type(f"{line}\t\x01printf '<%s>\\n' \necho '{END}' {number}\n")
            output = shell.read_until(rf"\n{END} {number}\n")
            completed[line] = re.findall(r"^<(.*)>$", output, re.MULTILINE)[-1]
    finally:
        shell.end()
    assert completed == LINES
