"""Unusable vectors, such as NaN or zero, never enter an index; damaged ones are encoded again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy
import pytest
from wrapped import Wrapped

from semsearch import Document, Index
from semsearch.errors import BadRowError, EncoderError, NoVectorError


class Failing(Wrapped):
    """An encoder that returns unusable vectors for texts with the word "broken"."""

    def __init__(self, value):
        super().__init__("hashing:32")
        self.value = value

    def encode_documents(self, texts):
        matrix = self._encoder.encode_documents(texts)
        if self.value is not None:
            matrix[["broken" in text for text in texts]] = self.value
        return matrix

    encode_queries = encode_documents


def corpus(bad=(3, 377)):
    return [
        Document(str(n), f"{'broken' if n in bad else 'sound'} text {n}", source=f"c.csv:{n + 2}")
        for n in range(400)
    ]


@pytest.fixture(params=[numpy.nan, 0, numpy.inf, 3])
def encoder(request):
    return Failing(request.param)


def test_only_bad_rows_are_skipped_and_reported_with_their_source(tmp_path, encoder):
    skipped = []
    with Index.create(tmp_path / "x", [encoder]) as index:
        with pytest.raises(BadRowError, match="^c.csv:5: "):
            index.add(corpus())
        with index.writer(on_bad_row=skipped.append) as writer:
            summary = writer.upsert(corpus())
            assert writer.verify() == []
        assert [error.source for error in skipped] == ["c.csv:5", "c.csv:379"]
        assert (summary.added, summary.passages, len(index)) == (398, 398, 398)
        assert len(index.search("sound text", 2000)) == 398


def test_a_changed_document_keeps_its_old_text_and_a_query_is_refused(tmp_path, encoder):
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(corpus(bad=()))
        with index.writer(on_bad_row=lambda error: None) as writer:
            summary = writer.sync(corpus())
        assert (summary.changed, summary.removed, len(index)) == (0, 0, 400)
        assert index.search("377", 1, mode="bm25")[0].text == "sound text 377"
        with pytest.raises(NoVectorError, match="'broken one'"):
            index.search("broken one")


def test_repair_names_documents_that_still_lack_a_vector(tmp_path):
    encoder = Failing(None)
    with Index.create(tmp_path / "x", [encoder]) as index:
        index.add(corpus())
        with closing(sqlite3.connect(tmp_path / "x" / "index.sqlite")) as connection, connection:
            connection.execute("UPDATE vectors SET vector = zeroblob(60)")
        encoder.value = numpy.nan
        with index.writer() as writer:
            with pytest.raises(NoVectorError, match="2 passages, the first of '3'"):
                writer.repair()
            writer.delete(["3", "377"])
            writer.add_space(encoder)
            assert writer.verify() == []
        assert len(index.search("sound text", 2000)) == 398


@pytest.mark.parametrize("change", [lambda matrix: matrix[:, :-1], lambda matrix: None])
def test_an_array_of_another_shape_is_the_encoders_fault(tmp_path, change):
    class Wrong(Failing):
        def encode_documents(self, texts):
            return change(self._encoder.encode_documents(texts))

        def encode_queries(self, texts):
            return change(self._encoder.encode_queries(texts))

    with Index.create(tmp_path / "x", [Failing(None)]) as index:
        index.add(corpus()[:3])
    with Index.open(tmp_path / "x", [Wrong(None)]) as index:
        for use in (lambda: index.add(corpus()[5:9]), lambda: index.search("text")):
            with pytest.raises(EncoderError, match="'hashing:32'"):
                use()
