"""pandas DataFrames."""

from __future__ import annotations

import pandas
import pytest

from semsearch.corpus import frame_documents
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document


def test_frame():
    frame = pandas.DataFrame(
        {
            "id": [1.0, 2.0],
            "title": ["One", None],
            "text": ["first", "second"],
            "year": [1990, 1991],
            "score": [0.5, float("nan")],
            "count": pandas.array([1, None], dtype="Int64"),
            "day": [pandas.Timestamp("2020-01-02"), pandas.NaT],
            "genre": pandas.Categorical(["a", "b"]),
            "tags": [["x"], []],
        },
        index=["p", "q"],
    )
    notices: list[str] = []
    documents = list(frame_documents(frame, notify=notices.append))
    first = {"year": 1990, "score": 0.5, "count": 1, "genre": "a", "tags": ["x"]}
    second = {"year": 1991, "score": None, "count": None, "day": None, "genre": "b", "tags": []}
    assert documents == [
        Document("1", "first", "One", first | {"day": "2020-01-02T00:00:00"}),
        Document("2", "second", None, second),
    ]
    assert [document.source for document in documents] == ["frame.iloc[0]", "frame.iloc[1]"]
    assert notices == [
        "frame: text from 'text', title from 'title', id from 'id'; "
        "metadata: year, score, count, day, genre, tags"
    ]


def test_more_rows_than_a_batch():
    frame = pandas.DataFrame({"text": [f"text {number}" for number in range(2500)]})
    documents = list(frame_documents(frame))
    assert [document.text for document in documents] == list(frame["text"])
    assert documents[-1].source == "frame.iloc[2499]"


def test_bad_rows():
    frame = pandas.DataFrame({"text": ["good", float("nan"), None, pandas.NA, "", [5], "good"]})
    bad = []
    assert len(list(frame_documents(frame, on_bad_row=bad.append))) == 2
    assert [error.source for error in bad] == [f"frame.iloc[{row}]" for row in range(1, 6)]
    with pytest.raises(BadRowError, match=r"^frame\.iloc"):
        list(frame_documents(frame))


def test_frames_that_cannot_be_read():
    repeated = pandas.DataFrame([["a", "b"]], columns=["text", "text"])
    for columns in ({"text": []}, {}, repeated, {"a": ["x"], "b": ["y"]}):
        with pytest.raises(CorpusError):
            list(frame_documents(pandas.DataFrame(columns)))
