"""Removing many documents needs confirmation or --allow-removals; a dry run writes nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import code_of, invoke, shown_on

ROWS = [f"d{number},Text {number}.,{1900 + number}" for number in range(100)]


def write(path, rows):
    path.write_text("\n".join(["id,text,year", *rows]))


@pytest.fixture
def run(tmp_path):
    write(tmp_path / "corpus.csv", ROWS)
    invoke("index", "corpus.csv", "--encoder", "hashing")
    return invoke


def left(run):
    return run("info").stdout.partition("documents: ")[2].split()[0]


def state(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def test_sync_is_refused(run, tmp_path):
    write(tmp_path / "corpus.csv", ["new,New.,2000", *ROWS[50:]])
    result = run("index", "corpus.csv", "--sync", code=1)
    assert result.stderr.endswith("[too-many-removals]\n")
    assert "50 of 100 documents" in result.stderr
    assert left(run) == "101"  # the new document stays
    run("index", "corpus.csv", "--sync", "--allow-removals")
    assert left(run) == "51"


def test_deletion_is_refused(run):
    for arguments in (["--where", "not id like 'c%'"], [f"d{number}" for number in range(100)]):
        result = run("delete", *arguments, code=1)
        assert code_of(result) == "too-many-removals"
    assert left(run) == "100"
    arguments = ["delete", "--where", "year < 1950"]
    assert "50 of 100 documents ('d0'" in run(*arguments, "--dry-run").stdout
    assert left(run) == "100"
    assert run(*arguments, "--allow-removals").stdout == "50 documents deleted, 50 left\n"
    assert run("delete", "d60").stdout == "1 document deleted, 49 left\n"


def test_a_dry_run_loads_no_encoder_and_writes_nothing(run, tmp_path, monkeypatch):
    monkeypatch.setattr("semsearch.cli.index_command.preload_for_documents", None)
    monkeypatch.setattr("semsearch.index.load_encoder", None)
    write(tmp_path / "corpus.csv", ["d0,Changed.,1900", *ROWS[1:50], "new,New.,2000"])
    before = state(tmp_path)
    result = run("index", "corpus.csv", "--sync", "--dry-run")
    for count in ("1 document to add, 1 to change", " 49 unchanged", " 50 of 100 documents"):
        assert count in result.stdout
    assert "remove" not in run("index", "corpus.csv", "--dry-run").stdout
    result = run("index", "corpus.csv", "--index", "new/index", "--dry-run")
    assert "51 documents to add, 0 to change" in result.stdout
    assert state(tmp_path) == before


@pytest.mark.parametrize("answer", ["y", "n"])
def test_confirmation_on_a_terminal(run, answer):
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    ours, theirs = pty.openpty()
    arguments = ["delete", "--where", "year < 1950", "--index", "indexes/corpus"]
    with subprocess.Popen(
        [sys.executable, "-m", "semsearch", *arguments],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        os.write(ours, f"{answer}\n".encode())
        output = process.communicate(timeout=60)[0]
    os.close(theirs)
    prompt = shown_on(ours)
    assert "Remove 50 of 100 documents ('d0'" in prompt
    assert process.returncode == (0 if answer == "y" else 1)
    assert output == ("50 documents deleted, 50 left\n" if answer == "y" else "")
    assert left(run) == ("50" if answer == "y" else "100")
