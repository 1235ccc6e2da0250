"""The DataFrame accessor."""

from __future__ import annotations

import gc
import tempfile

import pandas
import pytest

import semsearch.integrations.pandas  # noqa: F401 - registers the accessor
from semsearch.encoders.hashing import HashingEncoder
from semsearch.errors import CorpusError, FilterError

FRAME = pandas.DataFrame(
    {
        "id": [7, 7, 8, 9],  # not document ids
        "text": ["The cat sleeps.", "The dog barks.", None, "The hen lays eggs."],
        "legs": [4, 4, 2, 2],
        "score": [1, 2, 3, 4],
        5: ["a", "b", "c", "d"],
    },
    index=["w", "x", "y", "z"],
)


@pytest.fixture
def counted():
    """An encoder that counts the texts it has encoded."""

    class Counted(HashingEncoder):
        texts = 0

        def encode_documents(self, texts):
            self.texts += len(texts)
            return super().encode_documents(texts)

    return Counted()


def test_returns_rows_with_scores(caplog):
    frame = FRAME.copy()
    found = frame.semsearch.search("the cat", k=2, encoder="hashing")
    assert list(found.columns) == ["score", "id", "text", "legs", "metadata.score", 5]
    assert found.index[0] == "w"
    assert found.drop(columns="score").iloc[0].tolist() == frame.iloc[0].tolist()
    # The two words of the query, in a text of three: 2/√6.
    assert found["score"].iloc[0] == pytest.approx(2 / 6**0.5, abs=1e-6)
    assert found["score"].is_monotonic_decreasing
    assert "frame.iloc[2]" in caplog.text  # it has no text
    assert frame.equals(FRAME)


def test_filters_and_options():
    frame = FRAME.copy()
    found = frame.semsearch.search("hen", encoder="hashing", mode="bm25", where="legs = 2")
    assert found.index.tolist() == ["z"]
    for columns in ("5", [5]):
        other = frame.semsearch.search("b", encoder="hashing", text_columns=columns, k=1)
        assert other.index.tolist() == ["x"]
    # Rows are named by their position.
    for where, rows in (("id = '3'", ["z"]), ("metadata.id = 7", ["w", "x"])):
        found = frame.semsearch.search("cat", encoder="hashing", where=where)
        assert found.index.tolist() == rows


def test_encodes_once_until_something_changes(counted):
    frame = FRAME.copy()
    for _ in range(2):
        frame.semsearch.search("cat", encoder=counted)
    assert counted.texts == 3 + 2  # queries are counted, too
    frame.loc["y", "text"] = "The owl hoots."
    assert frame.semsearch.search("owl", k=1, encoder=counted).index.tolist() == ["y"]
    assert counted.texts == 5 + 4 + 1
    frame.semsearch.search("cat", encoder=counted, text_columns=["text", "5"])
    assert counted.texts == 10 + 4 + 1


def test_mistakes_and_the_end_of_a_frame_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for frame in (
        pandas.DataFrame({"a": [1], "b": [2]}),
        pandas.DataFrame({"text": []}),
        pandas.DataFrame([["hello", 1, 2]], columns=["text", "a", "a"]),
    ):
        with pytest.raises(CorpusError):
            frame.semsearch.search("cat", encoder="hashing")
    frame = FRAME.copy()
    with pytest.raises(FilterError):
        frame.semsearch.search("cat", encoder="hashing", where="wings = 2")
    assert frame.semsearch.search("cat", encoder="hashing", k=1).index.tolist() == ["w"]
    del frame
    gc.collect()
    assert list(tmp_path.iterdir()) == []
