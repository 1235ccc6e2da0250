"""Downloads: complete, interrupted, and of files other than the published ones."""

from __future__ import annotations

import pytest

from semsearch.errors import DownloadError
from semsearch.evaluation.datasets import fetching
from semsearch.evaluation.datasets.fetching import fetch_file, fetch_set
from semsearch.evaluation.datasets.registry import DatasetKind, KnownFile, KnownSet


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deep" / "a.bin"


def beside(target):
    """The other files in the target's folder."""
    return sorted(file.name for file in target.parent.iterdir() if file != target)


def fetched(served, content=None):
    seen = []
    fetch_file(served.file("deep/a.bin", content), seen.append)
    return seen


def test_a_file_is_fetched(served, target):
    seen = fetched(served)
    assert target.read_bytes() == served.content
    assert beside(target) == []
    assert seen == sorted(seen)
    assert seen[-1] == len(served.content)


def test_another_file_of_that_name_is_kept(served, target):
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(DownloadError):
        fetched(served)
    assert target.read_text() == "mine"


def test_an_interrupted_download_is_repeated(served, target):
    served.breaks_after = [1_000_000]
    with pytest.raises(DownloadError):
        fetched(served)
    assert not target.exists()
    assert fetched(served)[0] == 0
    assert target.read_bytes() == served.content
    assert beside(target) == []


def test_wrong_bytes(served, target):
    with pytest.raises(DownloadError):
        fetched(served, content=served.content[::-1])
    assert not target.exists()
    assert beside(target) == []


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
