"""Ctrl-C, messages beside a progress bar, and shell completion."""

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


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SEMSEARCH_INDEX", raising=False)


@pytest.fixture
def birds():
    with Index.create("indexes/birds", "hashing") as index:
        index.add([Document("a", "a red bird", metadata={"year": 1999, "colour": "red"})])


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
