"""The ``semsearch datasets`` command: list and fetch."""

from __future__ import annotations

import hashlib
from functools import partial
from http.server import SimpleHTTPRequestHandler

import pytest

from semsearch.cli import datasets_command
from semsearch.evaluation.datasets import fetching
from semsearch.evaluation.datasets.registry import DatasetKind, KnownFile, KnownSet, known_sets
from tests.cli.conftest import code_of, invoke
from tests.conftest import serving


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Call `semsearch datasets` with an empty data folder."""
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path / "data"))

    return partial(invoke, "datasets")


def test_what_is_here(run, tmp_path):
    folder = tmp_path / "data" / "sts" / "SICK"
    folder.mkdir(parents=True)
    (folder / "SICK_trial.txt").touch()
    lines = run("list").stdout.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith(("sick", "snli"))] == [
        "partly",
        "no",
    ]
    for name in known_sets():
        assert any(line.startswith(name) for line in lines)


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
        assert run("fetch", "s").stdout == f"{tmp_path}/data/s\n"
        assert (tmp_path / "data" / "s" / "a.csv").read_bytes() == published.read_bytes()

    def test_changed_file_is_rejected(self, run, published, tmp_path):
        published.write_text("a,b,score\nx,y,9\n")
        assert code_of(run("fetch", "s", code=1)) == "download-failed"
        assert not (tmp_path / "data" / "s" / "a.csv").exists()

    def test_names_are_checked_before_downloading(self, run, tmp_path):
        result = run("fetch", "stsbenchmark", "nope", code=1)
        assert code_of(result) == "dataset-not-found"
        assert not (tmp_path / "data").exists()
