"""A small corpus, its index, and calls of commands in their folder."""

from __future__ import annotations

import csv
import io
import os
import re
from contextlib import suppress

import click
import pytest
from click.testing import CliRunner

from semsearch.cli import main

CORPUS = """id,title,text,year,genres
a,Night Train,A train crosses the mountains at night.,1951,"[""Drama"", ""Mystery""]"
b,Bread,The baker kneads dough before dawn.,1999,"[""Drama""]"
c,,Two boats race across the bay.,2004,[]
"""


def invoke(*arguments, code=0, typed=None):
    """Call `semsearch`; exceptions are raised."""
    runner = CliRunner(catch_exceptions=False)
    result = runner.invoke(main, list(map(str, arguments)), input=typed)
    assert result.exit_code == code, result.output
    return result


def shown_on(terminal):
    """What was written to a pseudo-terminal whose other end is closed."""
    shown = b""
    with suppress(OSError):  # of Linux, at the end
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    return shown.decode()


def rows(result):
    """The rows of a table that was printed as CSV."""
    return list(csv.DictReader(io.StringIO(result.stdout, newline="")))


def all_commands(group, context=None):
    """All commands that are not groups, with their paths."""
    context = click.Context(group, context)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            for path, inner in all_commands(command, context):
                yield [name, *path], inner
        else:
            yield [name], command


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Commands run in an empty folder, and no index or data set is named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path / "data"))


@pytest.fixture
def run(tmp_path):
    """Call `semsearch` in a folder that contains only corpus.csv."""
    (tmp_path / "corpus.csv").write_text(CORPUS)
    return invoke


@pytest.fixture
def indexed(run):
    run("index", "corpus.csv", "--encoder", "hashing")
    return run


def code_of(result):
    """The code of the error, which must be the last line on standard error, and the only one."""
    assert result.stdout == ""
    *notes, line = result.stderr.splitlines()
    assert not any(note.startswith("Error") for note in notes)
    match = re.fullmatch(r"Error: \S.* \[([a-z-]+)\]", line)
    assert match, line
    return match[1]
