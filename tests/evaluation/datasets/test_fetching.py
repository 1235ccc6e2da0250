"""Downloads: complete, interrupted, and from servers that fail or send other files."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.errors import DatasetError
from semsearch.evaluation.datasets import fetching
from semsearch.evaluation.datasets.fetching import fetch_file, fetch_set
from semsearch.evaluation.datasets.registry import DatasetKind, KnownFile, KnownSet


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def target(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
    return tmp_path / "deep" / "a.bin"


def beside(target):
    """The other files in the target's folder."""
    return sorted(file.name for file in target.parent.iterdir() if file != target)


def fetched(served, target, content=None):
    seen = []
    fetch_file(served.file("deep/a.bin", content), seen.append)
    return seen


def test_a_file_is_fetched(served, target):
    seen = fetched(served, target)
    assert target.read_bytes() == served.content
    assert beside(target) == []
    assert seen == sorted(seen)
    assert seen[-1] == len(served.content)


def test_another_file_of_that_name_is_kept(served, target):
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(DatasetError):
        fetched(served, target)
    assert target.read_text() == "mine"


class TestInterruptions:
    def test_a_later_run_resumes(self, served, target):
        served.breaks_after = [1_000_000]
        with pytest.raises(DatasetError):
            fetched(served, target)
        assert not target.exists()
        assert beside(target) == ["a.bin.part"]
        assert fetched(served, target)[0] == 1_000_000
        assert target.read_bytes() == served.content
        assert served.asked == [None, "bytes=1000000-"]
        assert beside(target) == []

    def test_a_file_that_changed_meanwhile_is_deleted(self, served, target):
        served.breaks_after = [1_000_000]
        with pytest.raises(DatasetError):
            fetched(served, target)
        served.content = served.content[::-1]
        with pytest.raises(DatasetError):
            fetched(served, target)
        fetched(served, target)
        assert target.read_bytes() == served.content


class TestUntrustedServers:
    def test_wrong_bytes(self, served, target):
        with pytest.raises(DatasetError):
            fetched(served, target, content=served.content[::-1])
        assert not target.exists()
        assert "a.bin.part" not in beside(target)

    def test_a_missing_file(self, served, target):
        served.status = 404
        with pytest.raises(DatasetError):
            fetched(served, target)

    def test_redirections_only_lead_to_the_web(self, served, target):
        served.status, served.location = 302, "file:///etc/hostname"
        with pytest.raises(DatasetError):
            fetched(served, target)
        assert not target.exists()


class TestSets:
    @pytest.fixture
    def known(self, served, tmp_path, monkeypatch):
        """A set of two files that can be fetched and one that cannot."""
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        files = (served.file("s/a"), served.file("s/b"), KnownFile("s/c", None, None, None))
        known = KnownSet("s", DatasetKind.STS, "", "", "", "s", {}, files, "it from its authors")
        monkeypatch.setattr(fetching, "known_set", lambda _: known)

    def test_a_set(self, known, tmp_path):
        seen = []
        with pytest.raises(DatasetError):
            fetch_set("s", lambda *progress: seen.append(progress))
        assert {file.name for file in (tmp_path / "s").iterdir()} == {"a", "b"}
        assert (seen[0], seen[-1]) == ((0, 6_000_000), (6_000_000, 6_000_000))
        (tmp_path / "s" / "c").touch()
        assert fetch_set("s") == Path(tmp_path / "s")
