"""Published data sets, as their authors ship them."""

from __future__ import annotations

import json

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError


def test_movies(data):
    paths = sorted((data / "corpora" / "movies").glob("*.json"))
    notices: list[str] = []
    bad: list[BadRowError] = []
    corpus = Corpus(paths, notify=notices.append, on_bad_row=bad.append)
    documents = list(corpus)
    films = [film for path in paths for film in json.loads(path.read_text("utf-8"))]
    described = [film for film in films if (film.get("extract") or "").strip()]
    assert [document.text for document in documents] == [film["extract"] for film in described]
    assert [document.title for document in documents] == [film["title"] for film in described]
    assert len(bad) == len(films) - len(described) > 0
    assert {error.reason for error in bad} == {"empty text"}
    assert corpus.name == "movies"
    assert corpus.fraction_read == 1.0
    assert len(notices) == len(paths)
    assert notices[0].startswith(
        f"{paths[0]}: text from 'extract', title from 'title', no id column: documents are named "
        "by their content; metadata: year, cast, genres, "
    )


def test_paraphrases_have_stray_quotes(data):
    name = "pairs/msr-para-train.tsv"
    documents = list(Corpus(data / name, text_columns="#1 String"))
    assert len(documents) == 3576
    lines = (data / name).read_text("utf-8-sig").splitlines()[1:]
    assert [document.text for document in documents] == [line.split("\t")[3] for line in lines]
