"""The short commands, the default index, Ctrl-C, completion, and the program's process."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import click
import pytest
from click.shell_completion import ShellComplete

from semsearch import Index
from semsearch.cli import main
from tests.cli.conftest import code_of


class TestDefaultIndex:
    def test_none_several_and_one_of_the_environment(self, run, monkeypatch):
        assert code_of(run("query", "x", code=1)) == "index-not-found"
        for name in ("one", "two"):
            run("index", "corpus.csv", "--index", f"indexes/{name}", "--encoder", "hashing")
        several = run("query", "x", code=1)
        assert code_of(several) == "index-not-found"
        assert "indexes/one, indexes/two" in several.stderr
        assert "Train" in run("query", "train", "--index", "indexes/two").stdout
        monkeypatch.setenv("SEMSEARCH_INDEX", "elsewhere")
        assert "no index at elsewhere" in run("query", "x", code=1).stderr

    def test_the_name_alone(self, indexed, tmp_path):
        for command in (["query", "train"], ["pairs"]):
            named = indexed(*command, "--index", "indexes/corpus").stdout
            assert indexed(*command, "--index", "corpus").stdout == named
        indexed("index", "corpus.csv", "--index", "corpus")
        assert not (tmp_path / "corpus").exists()


def test_info_as_json(indexed):
    assert indexed("--version").output.startswith("semsearch 0.")
    info = json.loads(indexed("info", "--format", "json").stdout)
    assert (info["documents"], info["passages"]) == (3, 3)
    assert info["fields"] == ["genres", "year"]
    assert info["field_kinds"] == {"genres": {"list of text": 2, "list": 1}, "year": {"number": 3}}
    assert info["examples"] == {"genres": "Drama", "year": 1951}
    (space,) = info["spaces"]
    assert (space["encoder"], space["dimension"]) == ("hashing", 256)
    assert space["fingerprint"] == "hashing-1-256"
    assert set(info["files"]) == set(info["sizes"]) >= {"index.sqlite", "hashing-1.faiss"}


def test_verify_and_repair(indexed, tmp_path):
    snapshot = tmp_path / "indexes" / "corpus" / "hashing-1.faiss"
    snapshot.write_bytes(bytes(snapshot.stat().st_size))
    (fault,) = indexed("verify", code=1).stdout.splitlines()
    assert "hashing-1.faiss is missing or damaged" in fault
    assert "1 fault found, 0 left" in indexed("verify", "--repair").stdout
    assert indexed("verify").stdout == "indexes/corpus: no faults\n"
    with closing(sqlite3.connect(snapshot.with_name("index.sqlite"))) as connection, connection:
        connection.execute('UPDATE passages SET "end" = 1 WHERE passage_id = 1')
    for damaged in snapshot.parent.glob("*.faiss"):
        damaged.write_bytes(b"")
    assert ", 1 left" in indexed("verify", "--repair", code=1).stdout


def test_second_writer_is_rejected(indexed, writing_elsewhere):
    with writing_elsewhere("indexes/corpus") as process:
        for arguments in (["index", "corpus.csv"], ["delete", "a"], ["compact"], ["verify"]):
            result = indexed(*arguments, code=1)
            assert code_of(result) == "index-busy"
            assert f"process {process} " in result.stderr


@pytest.mark.parametrize(
    ("command", "given", "policy"),
    [("info", None, "passive"), ("train", None, None), ("info", "active", "active")],
)
def test_how_threads_wait(command, given, policy):
    """Spinning threads are faster only in training; a user's own choice counts."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    code = f"""import os, sys; from semsearch import cli
sys.argv = ["semsearch", "{command}"]
cli.main.main = lambda **_: print(os.environ.get("OMP_WAIT_POLICY"))
cli.run()"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{policy}\n"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, click.Abort])
def test_ctrl_c(indexed, monkeypatch, kind):
    """The latter is raised at a question."""

    def interrupted(*arguments, **options):
        raise kind

    monkeypatch.setattr(Index, "open", interrupted)
    indexed("info", code=130)


@pytest.mark.parametrize("line", ["index", "query --rerank", "train siamese --data"])
def test_files_are_completed(line):
    shell = ShellComplete(main, {}, "semsearch", "_SEMSEARCH_COMPLETE")
    found = shell.get_completions(line.split(), "ti")
    assert [(item.type, item.value) for item in found] == [("file", "ti")]
