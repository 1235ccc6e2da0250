"""The short commands, the default index, and help."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from semsearch import Index
from semsearch.cli import COMMANDS
from tests.cli.conftest import error_of


class TestDefaultIndex:
    def test_no_index(self, run):
        assert "no index under indexes/" in error_of(run("query", "x", code=1))

    def test_several_indexes(self, indexed):
        indexed("index", "corpus.csv", "--index", "indexes/two", "--encoder", "hashing")
        assert "indexes/corpus, indexes/two" in error_of(indexed("query", "x", code=1))
        assert "Train" in indexed("query", "train", "--index", "indexes/two").stdout

    def test_from_the_environment(self, indexed, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_INDEX", "elsewhere")
        assert "no index at elsewhere" in error_of(indexed("query", "x", code=1))

    def test_the_name_alone(self, indexed, tmp_path):
        for command in (["query", "train"], ["pairs"]):
            named = indexed(*command, "--index", "indexes/corpus").stdout
            assert indexed(*command, "--index", "corpus").stdout == named
        indexed("index", "corpus.csv", "--index", "corpus")
        assert not (tmp_path / "corpus").exists()


class TestInfo:
    def test_json(self, indexed):
        info = json.loads(indexed("info", "--format", "json").stdout)
        assert (info["documents"], info["chunks"]) == (3, 3)
        assert info["fields"] == ["genres", "year"]
        assert info["field_kinds"] == {
            "genres": {"list of text": 2, "list": 1},
            "year": {"number": 3},
        }
        assert info["examples"] == {"genres": "Drama", "year": 1951}
        (space,) = info["spaces"]
        assert (space["encoder"], space["dimension"]) == ("hashing", 256)
        assert space["fingerprint"] == "hashing-1-256"
        assert set(info["files"]) == set(info["sizes"]) >= {"index.sqlite", "hashing-1.faiss"}

    def test_text(self, indexed):
        output = indexed("info").stdout
        assert "space hashing: encoder hashing, dimension 256" in output
        genres = "field genres: list of text (2 documents), list (1), such as 'Drama'\n"
        assert genres + "field year: number (3 documents), such as 1951\n" in output


class TestDelete:
    def test_by_id_and_by_filter(self, indexed):
        nothing = indexed("delete", "--where", "id = 7")
        assert nothing.stdout == "0 documents deleted, 3 left\n"
        assert "where: id holds text; reading 7 as '7'\n" in nothing.stderr
        assert "where: no document matches" in nothing.stderr
        assert indexed("delete", "a").stdout == "1 document deleted, 2 left\n"
        assert indexed("delete", "--where", "year > 2000").stdout == "1 document deleted, 1 left\n"

    def test_mistakes(self, indexed):
        assert "no document 'z'" in error_of(indexed("delete", "a", "z", code=1))
        assert "nothing to delete" in error_of(indexed("delete", code=1))
        assert "documents: 3" in indexed("info").stdout


class TestMaintenance:
    def test_verify_and_repair(self, indexed, tmp_path):
        assert indexed("verify").stdout == "indexes/corpus: no faults\n"
        snapshot = tmp_path / "indexes" / "corpus" / "hashing-1.faiss"
        snapshot.write_bytes(bytes(snapshot.stat().st_size))
        output = indexed("verify", code=1).stdout
        assert output == (
            "hashing-1.faiss is damaged (its SHA-256 is not the recorded one); "
            "to fix it: semsearch verify --repair\n"
        )
        assert indexed("verify", "--repair").stdout.endswith(
            "repaired; 0 faults left\nindexes/corpus: no faults\n"
        )

    def test_faults_left_after_a_repair_are_reported(self, indexed, tmp_path):
        folder = tmp_path / "indexes" / "corpus"
        (folder / "hashing-1.faiss").write_bytes(b"")
        with closing(sqlite3.connect(folder / "index.sqlite")) as connection, connection:
            connection.execute('UPDATE chunks SET "end" = 1 WHERE chunk_id = 1')
        left = "1 passage not as written; to fix it: semsearch index CORPUS --index NEW-DIRECTORY\n"
        output = indexed("verify", "--repair", code=1).stdout
        assert output.endswith("repaired; 1 fault left\n" + left)
        assert indexed("verify", code=1).stdout == left

    def test_missing_snapshot_is_reported_and_bypassed(self, indexed, tmp_path):
        (tmp_path / "indexes" / "corpus" / "hashing-1.faiss").unlink()
        result = indexed("query", "train", "-k", "1")
        assert "Night Train" in result.stdout
        assert "is missing; searching the vectors in SQLite instead" in result.stderr

    def test_compact(self, indexed, tmp_path):
        indexed("delete", "a")
        assert "bytes before" in indexed("compact").stdout
        folder = tmp_path / "indexes" / "corpus"
        assert not any(b"mountains" in file.read_bytes() for file in folder.iterdir())

    def test_second_writer_is_rejected(self, indexed, writing_elsewhere):
        with writing_elsewhere("indexes/corpus") as process:
            for arguments in (["index", "corpus.csv"], ["delete", "a"], ["compact"], ["verify"]):
                error = error_of(indexed(*arguments, code=1))
                assert f"is being written by process {process} since" in error
                assert "; --wait waits for it" in error

    def test_a_reader_that_hinders_is_no_writer_to_wait_for(self, indexed, monkeypatch):
        pragmas = ("PRAGMA busy_timeout = 100",)
        monkeypatch.setattr("semsearch.stores.local.database._PRAGMAS", pragmas)
        with Index.open("indexes/corpus") as index, index.read() as state:
            assert state.count() == 3
            indexed("delete", "a")
            error = error_of(indexed("compact", code=1))
        assert "is being read, by this process or another, so" in error
        assert "--wait" not in error


class TestHelp:
    @pytest.mark.parametrize("name", list(COMMANDS))
    def test_every_command_has_examples(self, run, name):
        assert f"\n  semsearch {name}" in run(name, "--help").output

    def test_overview_and_version(self, run):
        assert "semsearch index corpus.csv" in run("--help").output
        assert run("--version").output.startswith("semsearch 0.")

    def test_unknown_command(self, run):
        assert "No such command 'serach'" in run("serach", code=2).stderr


@pytest.mark.parametrize(
    ("code", "status", "message"), [(None, 0, ""), (3, 3, ""), ("No licence.", 1, "No licence.\n")]
)
def test_a_plugin_that_exits(code, status, message):
    program = f"""import sys; from semsearch import cli
cli._status = lambda: sys.exit({code!r})
cli.run()"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "", message)


@pytest.mark.parametrize(
    ("command", "given", "policy"),
    [("info", None, "passive"), ("query", None, "passive"), ("train", None, None)]
    + [("info", "active", "active")],
)
def test_how_threads_wait(command, given, policy):
    """Spinning threads are faster only in training; a user's own choice counts."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    if given:
        environment["OMP_WAIT_POLICY"] = given
    code = f"""import os, sys; from semsearch import cli
sys.argv = ["semsearch", "{command}"]
cli._status = lambda: print(os.environ.get("OMP_WAIT_POLICY"))
cli.run()"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{policy}\n"
