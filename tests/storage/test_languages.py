"""Stemming and stop words by language."""

from __future__ import annotations

import sys

import pytest
import snowballstemmer
from bm25s.stopwords import STOPWORDS_GERMAN

from semsearch import Document, Index
from semsearch.errors import ArgumentError, MissingExtraError
from semsearch.storage.words import Analyser, language

TEXTS = {
    "a": "Die Häuser am Fluß waren alt.",
    "b": "Ein Haus für alle.",
    "c": "Der Hund läuft; Hunde laufen.",
    "d": "東京の家",
}


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "x", "hashing") as index:
        index.add(Document(name, text) for name, text in TEXTS.items())
        yield index


def found(index, query):
    return sorted(hit.document_id for hit in index.search(query, mode="bm25"))


def set_stemmer(index, name):
    with index.writer() as writer:
        writer.set_stemmer(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("german", "häuser laufen katzen schönheit"),
        ("english", "running generously relational"),
        ("russian", "красивая книгами"),
    ],
)
def test_stems_are_those_of_snowball(name, text):
    """Compared with Snowball's Python implementation."""
    expected = [snowballstemmer.stemmer(name).stemWord(word) for word in text.split()]
    assert Analyser(language(name)).searchable(text) == " ".join(expected)


def test_stop_words():
    german = Analyser(language("german"))
    assert set(language("german").stop_words) >= set(STOPWORDS_GERMAN[:20])
    assert german.query_terms("die Häuser für alte Hunde") == ['"haus"', '"alt"', '"hund"']
    assert german.query_terms("für alle") == ['"fur"', '"all"']  # kept, as there are no other words
    assert Analyser(language("none")).query_terms("The cats") == ['"the"', '"cats"']


class TestOnAnIndex:
    def test_german(self, index):
        assert index.info().language is None
        assert found(index, "haus") == ["b"]
        set_stemmer(index, "german")
        assert index.info().language == language("german")
        assert found(index, "haus") == found(index, "HÄUSER") == ["a", "b"]
        assert found(index, "hund läufst") == ["c"]
        assert found(index, "die") == ["a"]  # a query of stop words only searches for them
        assert found(index, "die katze frisst fisch") == []
        for phrase, first in (("die häuser", "a"), ("ein haus", "b")):  # with a stop word
            assert index.search(f'"{phrase}"', mode="bm25")[0].document_id == first
        assert found(index, "haus -fluss") == ["b"]
        assert found(index, "東京") == ["d"]

    def test_later_additions(self, index):
        set_stemmer(index, "german")
        index.add([Document("e", "Viele Häuser."), Document("a", "Nichts.")])
        assert found(index, "haus") == ["b", "e"]
        index.delete(["b"])
        assert found(index, "haus") == ["e"]
        with index.writer() as writer:
            assert writer.verify() == []
            writer.compact()
            assert writer.verify() == []
        with Index.open(index.path) as again:
            assert found(again, "häusern") == ["e"]


@pytest.mark.parametrize("name", ["klingon", 3])
def test_unknown_languages(index, name):
    with pytest.raises(ArgumentError):
        set_stemmer(index, name)


def test_without_the_extra(index, monkeypatch):
    set_stemmer(index, "german")
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(MissingExtraError):
        set_stemmer(index, "french")
    with Index.open(index.path) as again:
        with pytest.raises(MissingExtraError):
            again.search("haus", mode="bm25")
        assert again.search("haus")  # semantic search needs no stemmer
    set_stemmer(index, "none")
