"""Plugins of an installed package, in Python and from the command line."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from click.testing import CliRunner

from semsearch import Corpus, Document, Index, load_encoder, plugins
from semsearch.cli import main
from semsearch.errors import ArgumentError, BadRowError, CorpusError, EncoderError, IndexStoreError

SAMPLE = Path(__file__).parent / "sample"
CARDS = "a: red bird\nb: blue fish\nc: a red fish\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder into which pip has installed the sample package, without a network."""
    try:
        metadata.version("pip")
    except metadata.PackageNotFoundError:
        pytest.skip("pip is not installed (uv venv --seed makes an environment with it)")
    folder = tmp_path_factory.mktemp("plugins")
    built = folder / "source"
    # A copy, since setuptools writes next to the sources.
    copied = {
        file: built / file.relative_to(SAMPLE) for file in SAMPLE.rglob("*") if file.is_file()
    }
    for file, copy in copied.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(file.read_bytes())
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site", built]
    subprocess.run(command, check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    return folder / "site"


@pytest.fixture
def installed(site, monkeypatch, tmp_path):
    """The package on the path, and an empty folder to work in."""
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    plugins.find_plugin.cache_clear()
    yield tmp_path
    plugins.find_plugin.cache_clear()


def warnings(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_from_the_command_line(installed):
    def run(*arguments):
        result = CliRunner().invoke(main, [*arguments, "--index", "shelf://birds"])
        assert result.exit_code == 0, result.output
        return result.stdout

    (installed / "birds.cards").write_text(CARDS)
    run("index", "birds.cards", "--encoder", "letters:abcdef")
    found = json.loads(run("query", "fabled", "-k", "1", "--format", "jsonl"))
    # Cosines of the counts of a to f: 4/√30, 3/√15 and 4/√20.
    assert found["hits"][0]["id"] == "c"
    assert (installed / "shelf" / "birds" / "index.sqlite").exists()


class TestEncoders:
    def test_is_found_by_name_and_opens_its_index_again(self, installed):
        with Index.create("index", "letters") as index:
            index.add([Document("a", "A plugin.")])
        with Index.open("index") as index:
            assert index.space().description == {"letters": "abcdefghijklmnopqrstuvwxyz"}
            assert index.search("plugin")[0].score > 0.5
        assert load_encoder("letters:ab").encode("abba").shape == (3,)

    def test_a_folder_of_that_name_comes_first(self, installed):
        (installed / "letters").mkdir()
        with pytest.raises(EncoderError, match="letters"):
            load_encoder("letters")

    @pytest.mark.parametrize("spec", ["letters:1", "halved", "renamed:x"])
    def test_mistakes_name_the_plugin(self, installed, spec):
        with pytest.raises(EncoderError, match=f"'{spec}'|semsearch-sample"):
            load_encoder(spec)

    def test_broken_plugin_is_ignored_with_one_warning(self, installed, caplog):
        for _ in range(2):
            with pytest.raises(EncoderError, match="'broken'"):
                load_encoder("broken")
        [warning] = warnings(caplog)
        assert "'broken' of package semsearch-sample" in warning


class TestReaders:
    def test_reads_files_of_its_ending(self, installed):
        (installed / "birds.CARDS").write_text(CARDS)
        documents = list(Corpus("birds.CARDS"))
        assert [document.id for document in documents] == ["a", "b", "c"]
        assert documents[0].metadata == {"letters": 1}

    def test_bad_rows_are_reported(self, installed):
        (installed / "birds.cards").write_text(CARDS + "no card\n")
        with pytest.raises(BadRowError, match=r"birds\.cards:4"):
            list(Corpus("birds.cards"))

    @pytest.mark.parametrize("ending", ["torn", "untabled", "mapped"])
    def test_mistakes_name_the_plugin(self, installed, ending):
        (installed / f"x.{ending}").write_text(CARDS)
        with pytest.raises(CorpusError, match=f"plugin '{ending}' of package semsearch-sample"):
            list(Corpus(f"x.{ending}"))

    def test_broken_plugin_is_ignored_with_one_warning(self, installed, caplog):
        (installed / "x.wrecked").write_text("id,text\na,one\n")
        for _ in range(2):
            assert [document.text for document in Corpus("x.wrecked")] == ["one"]
        [warning] = warnings(caplog)
        assert "'wrecked' of package semsearch-sample" in warning


class TestStores:
    def test_keeps_indexes_at_its_addresses(self, installed):
        with Index.create("shelf://a/b", "hashing") as index:
            index.add([Document("x", "one")])
        with Index.open("shelf://a/b") as index:
            assert index.search("one")[0].document_id == "x"
        assert (installed / "shelf" / "a" / "b" / "index.sqlite").exists()

    def test_mistakes_name_the_plugin(self, installed):
        for use in (Index.open, Index.create):
            with pytest.raises(IndexStoreError, match="^damp://a: .*semsearch-sample"):
                use("damp://a")

    def test_unknown_or_broken_store_is_an_error(self, installed, caplog):
        with pytest.raises(ArgumentError, match="attic://a"):
            Index.open("attic://a")
        assert warnings(caplog) == []
        with pytest.raises(ArgumentError, match="'burnt'"):
            Index.create("burnt://a", "hashing")
        [warning] = warnings(caplog)
        assert "'burnt' of package semsearch-sample" in warning


def test_packages_are_searched_only_for_unknown_names(installed, monkeypatch):
    def fail():
        raise AssertionError("packages were searched")

    monkeypatch.setattr("importlib.metadata.distributions", fail)
    (installed / "c.csv").write_text("id,text\na,one\n")
    (installed / "folder").mkdir()
    with Index.create("index", "hashing") as index:
        index.add(Corpus("c.csv"))
        assert index.search("one")[0].document_id == "a"
    for spec in ("minilm@nothing", "./none", "some/model", "folder"):
        with pytest.raises(EncoderError):
            load_encoder(spec)
    with pytest.raises(AssertionError):
        load_encoder("letters")
