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
        f"{paths[0]}: text from 'extract', title from 'title', no id column: ids are derived "
        "from the text; metadata: year, cast, genres, "
    )
