"""Where published data sets are stored, their registry, and their downloads."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from semsearch.errors import DatasetNotFoundError, DownloadError
from semsearch.evaluation.datasets import fetching, registry
from semsearch.evaluation.datasets.fetching import fetch_file, fetch_set
from semsearch.evaluation.datasets.registry import (
    DatasetKind,
    KnownFile,
    KnownSet,
    data_file,
    known_set,
    known_sets,
)


def test_where_files_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    for name in ("a.txt", "sts/SICK/SICK_trial.txt", "default/semsearch/data/pairs/q.tsv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert data_file("a.txt") == tmp_path / "a.txt"
    with pytest.raises(DatasetNotFoundError, match=r"^b\.txt"):
        data_file("b.txt")
    missing = {file.path for file in known_set("sick").missing_files()}
    assert missing >= {"sts/SICK/SICK_train.txt", "sts/SICK/SICK_test_annotated.txt"}
    monkeypatch.delenv("SEMSEARCH_DATA")
    monkeypatch.setattr(registry, "user_data_path", (tmp_path / "default").joinpath)
    with pytest.raises(DatasetNotFoundError, match="datasets fetch quora$"):
        data_file("pairs/quora_dev.tsv")
    assert (
        data_file("pairs/q.tsv") == tmp_path / "default" / "semsearch" / "data" / "pairs" / "q.tsv"
    )


def test_the_registry():
    """Its sets, and the first and the last line of known_files.tsv."""
    known = known_sets.__wrapped__()
    assert known == known_sets()
    for one in known.values():
        assert one.licence
        assert one.home.startswith("http")
        assert min(one.rows.values()) > 0
        for file in one.files:
            assert file.path == one.place or file.path.startswith(f"{one.place}/")
            if file.url is None:
                assert one.source
            else:
                assert file.url.startswith("https://")
                assert file.size
                assert re.fullmatch("[0-9a-f]{64}", file.sha256)
    lines = Path(registry.__file__).with_name("known_files.tsv").read_text("utf-8").splitlines()
    for line in (lines[1], lines[-1]):
        name, path, *facts = line.split("\t")
        [file] = [file for file in known[name].files if file.path == path]
        assert [str(fact or "") for fact in (file.size, file.sha256, file.url)] == facts
    assert sum(len(one.files) for one in known.values()) == len(lines) - 1
    with pytest.raises(DatasetNotFoundError):
        known_set("nothing")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deep" / "a.bin"


def beside(target):
    """The other files in the target's folder."""
    return sorted(file.name for file in target.parent.iterdir() if file != target)


def fetched(served, *content):
    seen = []
    fetch_file(served.file("deep/a.bin", *content), seen.append)
    return seen


def test_a_file_is_fetched_but_another_of_that_name_is_kept(served, target):
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(DownloadError):
        fetched(served)
    assert target.read_text() == "mine"
    target.unlink()
    seen = fetched(served)
    assert target.read_bytes() == served.content
    assert beside(target) == []
    assert seen == sorted(seen)
    assert seen[-1] == len(served.content)


def test_interrupted_downloads_and_wrong_bytes(served, target):
    served.breaks_after = 1_000_000
    for content in (served.content, served.content[::-1]):
        with pytest.raises(DownloadError):
            fetched(served, content)
        assert not target.exists()
    assert beside(target) == []
    assert fetched(served)[0] == 0
    assert target.read_bytes() == served.content


def test_a_set_of_which_one_file_is_fetched_by_hand(served, tmp_path, monkeypatch):
    files = (served.file("s/a"), served.file("s/b"), KnownFile("s/c", None, None, None))
    known = KnownSet("s", DatasetKind.STS, "", "", "", "s", {}, files, "it from its authors")
    monkeypatch.setattr(fetching, "known_set", lambda _: known)
    seen = []
    with pytest.raises(DownloadError):
        fetch_set("s", lambda *progress: seen.append(progress))
    assert {file.name for file in (tmp_path / "s").iterdir()} == {"a", "b"}
    assert (seen[0], seen[-1]) == ((0, 6_000_000), (6_000_000, 6_000_000))
    (tmp_path / "s" / "c").touch()
    assert fetch_set("s") == tmp_path / "s"
