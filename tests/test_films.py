"""Search over real films equals numpy over vectors from plain sentence-transformers.

Every eighth film of one decade by default; SEMSEARCH_FILMS="movies-*.json" takes all 22,627 films
with a text.
"""

from __future__ import annotations

import json
import os

import numpy
import pytest
from sqlalchemy import text

from semsearch import Document, Index
from semsearch.encoders.model_folder import find_model

pytestmark = pytest.mark.nightly

K = 10
TIE = 1e-3

#: Filters, and equivalent Python functions of a film's metadata.
FILTERS = {
    "year >= 1976 and genres = 'Drama'": lambda f: f["year"] >= 1976 and "Drama" in f["genres"],
    "not (genres in ('Comedy', 'Drama') or year < 1973)": lambda f: (
        not ({"Comedy", "Drama"} & set(f["genres"]) or f["year"] < 1973)
    ),
    "cast like '%john%' or year = 1979": lambda f: (
        any("john" in name.lower() for name in f["cast"]) or f["year"] == 1979
    ),
    "cast = 'Burt Reynolds'": lambda f: "Burt Reynolds" in f["cast"],
}


@pytest.fixture(scope="module")
def films(data):
    """Documents as a user would make them: the extract as text, the rest as metadata."""
    documents = []
    chosen = os.environ.get("SEMSEARCH_FILMS")
    for file in sorted((data / "corpora" / "movies").glob(chosen or "movies-1970s.json")):
        for number, film in enumerate(json.loads(file.read_text("utf-8"))):
            if film.get("extract"):
                metadata = {name: film[name] for name in ("year", "genres", "cast")}
                documents.append(
                    Document(f"{file.stem}-{number}", film["extract"], film["title"], metadata)
                )
    return documents if chosen else documents[::8]


@pytest.fixture(scope="module")
def queries(data):
    """200 definitions, evenly spaced over the dictionary."""
    lines = (data / "corpora" / "wordnet_definitions.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["text"] for line in lines[:: len(lines) // 200][:200]]


@pytest.fixture(scope="module")
def index(films, cache, tmp_path_factory):
    with Index.create(tmp_path_factory.mktemp("films"), ["minilm"], precision="fp32") as index:
        index.add(films)
        yield index


@pytest.fixture(scope="module")
def reference(films, queries, index):
    """Cosines from plain sentence-transformers, shape (queries, films).

    A film whose extract exceeds the model's limit scores by its best passage.
    """
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(find_model("minilm").path), device="cpu")
    asked = model.encode(queries, normalize_embeddings=True)
    cosines = asked @ model.encode([f.text for f in films], normalize_embeddings=True).T
    column = {film.id: number for number, film in enumerate(films)}
    with index.read() as state:
        connection = state.connection
        rows = connection.execute(
            text(
                "SELECT external_id, text FROM passages JOIN documents USING (document_id) WHERE "
                "document_id IN (SELECT document_id FROM passages GROUP BY 1 HAVING count(*) > 1)"
            )
        ).all()
    for name in {row.external_id for row in rows}:
        passages = [row.text for row in rows if row.external_id == name]
        scores = asked @ model.encode(passages, normalize_embeddings=True).T
        cosines[:, column[name]] = scores.max(axis=1)
    return cosines


@pytest.mark.parametrize("where", [None, *FILTERS])
def test_search_equals_numpy(films, queries, index, reference, where):
    rows = numpy.array([where is None or FILTERS[where](film.metadata) for film in films])
    names = numpy.array([film.id for film in films])[rows]
    count = min(K, len(names))
    assert count > 2
    answers = index.search_many(queries, K, where=where)
    assert len(answers) == 200
    for cosines, hits in zip(reference[:, rows], answers, strict=True):
        score = dict(zip(names, cosines, strict=True))
        expected = numpy.sort(cosines)[::-1][:count]
        found = [hit.document_id for hit in hits]
        assert len(set(found)) == count
        # The same films in the same order, except that films within TIE may swap.
        numpy.testing.assert_allclose([score[name] for name in found], expected, atol=TIE)
        numpy.testing.assert_allclose([hit.score for hit in hits], expected, atol=TIE)
