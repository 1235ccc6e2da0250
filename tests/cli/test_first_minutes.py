"""`semsearch` without a command, and shell completion."""

from __future__ import annotations

import io
import logging
import sys

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from rich.console import Console
from rich.file_proxy import FileProxy

from semsearch import Document, Index
from semsearch.cli import main
from tests.cli.conftest import invoke


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)


@pytest.fixture
def birds():
    with Index.create("indexes/birds", "hashing") as index:
        index.add([Document("a", "a red bird", metadata={"year": 1999, "colour": "red"})])


@pytest.fixture
def fish(birds):
    with Index.create("indexes/fish", "hashing:32") as index:
        index.add([Document("a", "a fish"), Document("b", "another fish")])


def output_of(*arguments):
    return invoke(*arguments).output


def test_several_indexes_and_a_broken_one(fish, tmp_path):
    (tmp_path / "indexes" / "broken").mkdir()
    (tmp_path / "indexes" / "broken" / "index.sqlite").write_text("no database")
    lines = output_of().splitlines()
    assert lines[0] == "indexes/birds   1 document"
    assert lines[1].startswith("indexes/broken  ")
    assert lines[2] == "indexes/fish    2 documents"
    assert "semsearch info --index indexes/birds" in output_of()


def test_the_index_of_the_environment(fish, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_INDEX", "indexes/fish")
    assert "--index" not in output_of()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, click.Abort])
def test_ctrl_c(birds, monkeypatch, kind):
    """The latter is raised at a question."""

    def interrupted(*arguments, **options):
        raise kind

    monkeypatch.setattr(Index, "open", interrupted)
    result = CliRunner().invoke(main, ["info"])
    assert result.exit_code == 130


def test_messages_are_written_above_a_progress_bar(birds, monkeypatch):
    """Rich redirects standard error while it shows a bar."""
    shown = Console(file=io.StringIO())

    def warning(*arguments, **options):
        monkeypatch.setattr(sys, "stderr", FileProxy(shown, sys.stderr))
        logging.getLogger("semsearch").warning("a message")
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "open", warning)
    CliRunner().invoke(main, ["info"])
    assert shown.file.getvalue().startswith("a message\n")


def completed(*arguments):
    """The completions of the last argument."""
    *before, last = arguments
    found = ShellComplete(main, {}, "semsearch", "_SEMSEARCH_COMPLETE")
    return [(item.type, item.value) for item in found.get_completions(list(before), last)]


@pytest.mark.parametrize(
    "line",
    ["index", "index --encoder", "query --queries", "query --rerank", "train siamese --data"],
)
def test_files(line):
    assert completed(*line.split(), "ti") == [("file", "ti")]


def test_indexes(fish):
    names = [("plain", "indexes/birds"), ("plain", "indexes/fish")]
    assert completed("query", "--index", "") == names
    assert completed("serve", "--index", "indexes/f") == names[1:]
    assert completed("info", "--index", "/data/") == [("dir", "/data/")]
