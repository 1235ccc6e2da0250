"""What shells make of `semsearch completion` when somebody types and presses TAB."""

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

pty = pytest.importorskip("pty", reason="takes a pseudo-terminal")

pytestmark = pytest.mark.slow

#: Without anybody's own settings.
COMMANDS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}

#: What is typed before TAB, and the last word of the line then. Zsh completes the longest common
#: part first, so that there is one way to go on with each.
LINES = {
    "semsearch que": "query",
    "semsearch query --expl": "--explain",
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

#: What terminals obey instead of showing it.
CONTROLS = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07]*\x07|\(.|[=>])|\r")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    fields = {"birds": {"year": 1999, "colour": "red"}, "my notes": {"first author": "Ada"}}
    for name, metadata in fields.items():
        with Index.create(folder / "indexes" / name, "hashing") as index:
            index.add([Document("a", "a red bird", metadata=metadata)])
    return folder


class Shell:
    """A shell that a person types into."""

    def __init__(self, command, folder):
        programs = str(Path(sys.executable).parent)
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "TERM": "xterm", "COLUMNS": "80"}
        self._ends = pty.openpty()
        self._terminal = self._ends[0]
        self._said = ""
        # The first terminal that the leader of a session opens is the one that controls it.
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
        """What was printed up to that, without colours and titles of the window."""
        deadline = time.monotonic() + 100
        while not (found := re.search(pattern, self._said)):
            assert time.monotonic() < deadline, self._said
            if select([self._terminal], [], [], 1)[0]:
                self._said += os.read(self._terminal, 1 << 16).decode(errors="replace")
                self._said = CONTROLS.sub("", self._said)
        said, self._said = self._said[: found.end()], self._said[found.end() :]
        return said

    def end(self):
        self._process.kill()
        self._process.wait()
        for end in self._ends:
            os.close(end)


@pytest.mark.parametrize("name", COMMANDS)
def test_tab(program, folder, name):
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
            # Then to the beginning of the line (Ctrl-A): its words are printed instead of run.
            shell.type(f"{line}\t\x01printf '<%s>\\n' \necho '{END}' {number}\n")
            said = shell.read_until(rf"\n{END} {number}\n")
            completed[line] = re.findall(r"^<(.*)>$", said, re.MULTILINE)[-1]
    finally:
        shell.end()
    assert completed == LINES
