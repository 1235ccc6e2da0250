"""Plugins of an installed package, in Python and from the command line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from semsearch import Corpus, Document, Index, encoders, load_encoder
from semsearch.cli import main
from semsearch.errors import ArgumentError, EncoderError

SAMPLE = Path(__file__).parent / "sample"
BIRDS = "id,text\na,red bird\nb,blue fish\nc,a red fish\n"


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The sample package on the path, with the metadata that pip writes; an empty folder."""
    project = tomllib.loads((SAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / f"semsearch_sample-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    with (info / "entry_points.txt").open("w") as file:
        for group, names in project["entry-points"].items():
            file.write(f"[{group}]\n")
            file.writelines(f"{name} = {target}\n" for name, target in names.items())
    for folder in (SAMPLE / "src", info.parent):
        monkeypatch.syspath_prepend(folder)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    encoders._find_plugin.cache_clear()
    yield tmp_path / "work"
    encoders._find_plugin.cache_clear()


def test_from_the_command_line(installed):
    def run(*arguments):
        result = CliRunner().invoke(main, [*arguments, "--index", "birds"])
        assert result.exit_code == 0, result.output
        return result.stdout

    (installed / "birds.csv").write_text(BIRDS)
    run("index", "birds.csv", "--encoder", "letters:abcdef")
    found = json.loads(run("query", "fabled", "-k", "1", "--format", "jsonl"))
    # Cosines of the counts of a to f: 4/√30, 3/√15 and 4/√20.
    assert found["hits"][0]["id"] == "c"
    with Index.open("birds") as index:
        assert index.space().description == {"letters": "abcdef"}
        assert index.search("fabled")[0].document_id == "c"
        index.add([Document("d", "fabled")])
        assert index.search("fabled")[0].document_id == "d"


def test_a_folder_of_that_name_comes_first(installed):
    (installed / "letters").mkdir()
    with pytest.raises(EncoderError, match="letters"):
        load_encoder("letters")


@pytest.mark.parametrize("spec", ["halved", "renamed:x"])
def test_mistakes_of_encoders_name_the_plugin(installed, spec):
    with pytest.raises(EncoderError, match=f"'{spec.partition(':')[0]}'"):
        load_encoder(spec)


def test_unknown_stores_are_refused(installed):
    with pytest.raises(ArgumentError, match="attic://a"):
        Index.open("attic://a")


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
