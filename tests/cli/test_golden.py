"""What the commands print: each file in golden/ is a session in a terminal, run in an empty folder.

``$ cat > FILE << EOF`` writes the lines up to EOF. ``--update-golden`` rewrites the sessions.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from scripts.dev.examples import FOLDER, same
from semsearch.cli import COMMANDS, main
from tests.cli.conftest import all_commands

SESSIONS = {file.stem: file for file in Path(__file__).with_name("golden").glob("*.txt")}

#: Packages that sessions need besides those that `scripts/test` installs.
PACKAGES = {"copy": "milvus_lite"}


def replay(session: str) -> str:
    """The session with what its commands print now."""
    first, *blocks = re.split(r"^(?=\$ )", session, flags=re.MULTILINE)
    return first + "\n".join(_run(block.rstrip()) for block in blocks)


def _run(block: str) -> str:
    line, _, shown = block.partition("\n")
    words = shlex.split(line.removeprefix("$ "))
    if words[0] == "cat":
        Path(words[2]).write_text(shown.removesuffix("EOF"), "utf-8")
        return f"{block}\n"
    result = CliRunner(catch_exceptions=False).invoke(main, words[1:], prog_name="semsearch")
    printed = re.sub(r" +$", "", result.output, flags=re.MULTILINE)
    printed = printed.replace(str(Path.cwd()), FOLDER).rstrip()
    status = f"\n(exit status {result.exit_code})" if result.exit_code else ""
    return f"{line}\n{printed}{status}\n"


def _without_sizes(session: str) -> str:
    """The session without sizes of databases, which depend on SQLite's version."""
    return re.sub(r"[\d,]+ bytes before, [\d,]+ after", "", session)


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_prints_what_it_shows(name, monkeypatch, package, pytestconfig):
    if name in PACKAGES:
        package(PACKAGES[name])
    monkeypatch.delenv("SEMSEARCH_TOKEN", raising=False)
    monkeypatch.setenv("COLUMNS", "88")
    shown = SESSIONS[name].read_text("utf-8")
    printed = replay(shown)
    if same(_without_sizes(shown), _without_sizes(printed)):
        return
    if pytestconfig.option.update_golden:
        SESSIONS[name].write_text(printed, "utf-8")
    else:
        assert printed == shown  # times, sizes and noise of scores may differ


def test_each_command_has_a_session_with_its_help():
    assert set(SESSIONS) == {"semsearch", *COMMANDS}
    for path, _ in all_commands(main):
        help_line = f"$ semsearch {' '.join(path)} --help\n"
        assert help_line in SESSIONS[path[0]].read_text("utf-8")
