"""The ``semsearch datasets`` command: list, path and fetch."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest

from semsearch.cli import datasets_command
from semsearch.datasets import fetching
from semsearch.datasets.registry import DatasetKind, KnownFile, KnownSet, known_sets
from tests.cli.conftest import invoke
from tests.conftest import serving


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch datasets` with an empty data folder."""
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path / "data"))

    return partial(invoke, "datasets")


class TestList:
    def test_table(self, run):
        lines = run("list").stdout.splitlines()
        assert lines[:4] == [
            "name               kind                here",
            "stsbenchmark       sts                 no",
            "    train 5,749, dev 1,500, test 1,379",
            "    CC BY-SA 4.0 where not otherwise noted",
        ]

    def test_narrow_table(self, run, monkeypatch):
        monkeypatch.setenv("COLUMNS", "60")
        lines = run("list").stdout.splitlines()
        assert max(map(len, lines)) <= 60
        assert len(lines) == 1 + 3 * len(known_sets())

    def test_jsonl(self, run, tmp_path):
        folder = tmp_path / "data" / "sts" / "SICK"
        folder.mkdir(parents=True)
        (folder / "SICK_trial.txt").touch()
        listed = {}
        for line in run("list", "--format", "jsonl").stdout.splitlines():
            record = json.loads(line)
            listed[record.pop("name")] = record
        assert list(listed) == list(known_sets())
        assert listed["sick"]["here"] == "partly"
        assert "sts/SICK/SICK_train.txt" in listed["sick"]["missing"]
        assert listed["cranfield"]["rows"] == {"documents": 1400, "test": 225}
        assert listed["cranfield"]["here"] == "no"

    def test_imports_nothing_heavy(self, tmp_path):
        command = [sys.executable, "-X", "importtime", "-m", "semsearch", "datasets", "list"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
        loaded = {line.rsplit("|", 1)[-1].strip() for line in done.stderr.splitlines()}
        heavy = {"torch", "transformers", "pandas", "numpy", "sqlalchemy", "faiss", "openvino"}
        assert not loaded & heavy


class TestPath:
    def test_downloaded_set(self, run, tmp_path):
        file = tmp_path / "data" / "pairs" / "quora_dev.tsv"
        file.parent.mkdir(parents=True)
        file.touch()
        assert run("path", "quora").stdout == f"{file}\n"

    def test_missing_set(self, run):
        result = run("path", "sts12", code=1)
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
        assert result.stderr.endswith("semsearch datasets fetch sts12 [dataset-not-found]\n")

    def test_unknown_name(self, run):
        """Control characters are shown as Python escapes."""
        assert r"no data set 'st\x1bs' (known: " in run("path", "st\x1bs", code=1).stderr


class TestFetch:
    @pytest.fixture
    def published(self, tmp_path, monkeypatch):
        """A data set of one file on a local server."""

        class Quiet(SimpleHTTPRequestHandler):
            def log_message(self, *_arguments):
                """Log nothing."""

        folder = tmp_path / "server"
        folder.mkdir()
        (folder / "a.csv").write_text("a,b,score\nx,y,1\n")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        content = (folder / "a.csv").read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        with serving(partial(Quiet, directory=folder)) as url:
            file = KnownFile("s/a.csv", len(content), digest, f"{url}/a.csv")
            known = KnownSet("s", DatasetKind.STS, "", "", "CC0", "s", {}, (file,), None)
            monkeypatch.setattr(fetching, "known_set", lambda _: known)
            monkeypatch.setattr(datasets_command, "known_set", lambda _: known)
            yield folder / "a.csv"

    def test_downloads_the_file(self, run, published, tmp_path):
        result = run("fetch", "s")
        assert (tmp_path / "data" / "s" / "a.csv").read_bytes() == published.read_bytes()
        assert result.stderr == f"s: {tmp_path / 'data' / 's'} (licence: CC0)\n"
        run("fetch", "s", "s")

    def test_changed_file_is_rejected(self, run, published, tmp_path):
        published.write_text("a,b,score\nx,y,9\n")
        assert "sends a file other than the published one" in run("fetch", "s", code=1).stderr
        assert not (tmp_path / "data" / "s" / "a.csv").exists()

    def test_file_missing_on_the_server(self, run, published):
        published.unlink()
        assert "HTTP 404" in run("fetch", "s", code=1).stderr

    def test_names_are_checked_before_downloading(self, run, tmp_path):
        result = run("fetch", "stsbenchmark", "nope", code=1)
        assert result.stderr.startswith("Error: no data set 'nope' (known: ")
        assert not (tmp_path / "data").exists()

    def test_set_that_cannot_be_downloaded(self, run):
        error = run("fetch", "sts16", code=1).stderr
        assert "and 9 more cannot be downloaded automatically; get the test data with gold" in error

    def test_without_a_name(self, run):
        assert "Missing argument 'NAME...'" in run("fetch", code=2).stderr
