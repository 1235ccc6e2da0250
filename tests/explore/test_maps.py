"""Maps of passages: the projection and the file."""

from __future__ import annotations

import errno

import numpy
import pytest
from vectors import planted, unit_rows

from semsearch import Document, Index
from semsearch.errors import ArgumentError, IndexStoreError, SpaceError
from semsearch.explore import map as map_module
from semsearch.explore import projection
from semsearch.explore.map import make_map, map_file, open_map, unchanged_passages

BIRDS = [Document(f"b{n}", f"a red bird sings song{n} in the tree") for n in range(4)]
FISH = [Document(f"f{n}", f"the blue fish swims stream{n} under water") for n in range(4)]


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "animals", "hashing") as index:
        index.add(BIRDS + FISH)
        yield index


def silent(step, done, total):
    """Report no progress."""


def same_group_nearby(points, numbers):
    """The share of points whose nearest other point belongs to the same centre."""
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    numpy.fill_diagonal(distances, numpy.inf)
    return (numbers[distances.argmin(axis=1)] == numbers).mean()


class TestProjection:
    def test_few_vectors_use_principal_components(self):
        from sklearn.decomposition import PCA

        vectors = unit_rows(15, 16)
        points = projection.project(vectors, 0, silent)
        expected = PCA(2).fit_transform(vectors)
        assert numpy.allclose(numpy.abs(points), numpy.abs(expected), atol=1e-5)

    @pytest.mark.parametrize(("n", "times"), [(1, 1), (2, 1), (1, 60)])
    def test_one_or_two_vectors_and_equal_ones(self, n, times):
        vectors = numpy.repeat(unit_rows(n, 16), times, axis=0)
        points = projection.project(vectors, 0, silent)
        assert points.shape == (n * times, 2)
        assert numpy.isfinite(points).all()

    def test_neighbours_stay_neighbours_and_a_seed_repeats_the_map(self):
        vectors, numbers = planted(120, 4, 16, spread=0.4)
        calls = []
        points = projection.project(vectors, 7, lambda *call: calls.append(call))
        steps = list(dict.fromkeys((step, total) for step, _, total in calls))
        assert steps == [("neighbours", 120), ("layout", 750)]
        layout = [done for step, done, _ in calls if step == "layout"]
        assert layout == sorted(layout)
        assert layout[-1] == 750
        assert points.dtype == numpy.float32
        assert same_group_nearby(points, numbers) > 0.95
        assert numpy.array_equal(projection.project(vectors, 7, silent), points)


class TestMap:
    def test_is_saved_and_opened(self, index):
        assert open_map(index) is None
        made = make_map(index)
        made.save(index.path)
        found = open_map(index)
        assert all(map(numpy.array_equal, found, made))
        assert list(map(type, found)) == list(map(type, made))
        assert made.passage_ids.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
        assert [set(made.groups[:4]), set(made.groups[4:])] in ([{0}, {1}], [{1}, {0}])
        assert sorted(made.groups[made.typical]) == [0, 1]
        assert [file.name for file in index.path.glob("*map*")] == ["hashing.map"]

    def test_one_that_is_damaged_or_of_another_encoder_is_ignored(self, index, caplog):
        make_map(index)._replace(fingerprint="other").save(index.path)
        assert open_map(index) is None
        for content in (b"", b"x" * 1000):
            map_file(index.path, "hashing").write_bytes(content)
            assert open_map(index) is None
        assert [record.levelname for record in caplog.records] == ["WARNING"] * 2

    def test_of_many_passages_a_sample_is_shown(self, index, monkeypatch):
        monkeypatch.setattr(map_module, "SAMPLE", 6)
        made = make_map(index)
        assert [len(column) for column in made[2:6]] == [6, 6, 6, 6]
        assert len(list(unchanged_passages(index, made))) == 6

    def test_an_empty_index_and_an_unknown_space(self, tmp_path, index):
        with Index.create(tmp_path / "empty", "hashing") as empty:
            with pytest.raises(ArgumentError, match="empty"):
                make_map(empty)
        with pytest.raises(SpaceError, match="'other'"):
            make_map(index, "other")


def test_passages_that_were_deleted_or_changed_are_left_out(index, tmp_path):
    made = make_map(index)
    rows, passages = zip(*unchanged_passages(index, made), strict=True)
    assert rows == tuple(range(8))
    assert [found.passage.text for found in passages] == [one.text for one in BIRDS + FISH]
    index.delete(["b0"])
    index.add([Document("b1", "something else"), Document("new", "a green frog")])
    ids = [found.passage.document_id for _, found in unchanged_passages(index, made)]
    assert ids == [one.id for one in [*BIRDS[2:], *FISH]]
    with Index.create(tmp_path / "other", "hashing") as other:  # the same passage ids
        other.add([Document(one.id, f"{one.text}!") for one in BIRDS + FISH])
        assert list(unchanged_passages(other, made)) == []


def test_a_map_that_cannot_be_written(index, monkeypatch):
    def full(*arguments, **arrays):
        raise OSError(errno.ENOSPC, "No space left on device")

    made = make_map(index)
    monkeypatch.setattr(numpy, "savez", full)
    with pytest.raises(IndexStoreError):
        made.save(index.path)
    assert list(index.path.glob("*.tmp")) == []
