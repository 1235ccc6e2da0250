"""The local store, milvus-lite and (nightly) a real server return the same results.

Differences and their reasons are listed in docs/milvus.md.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from conditions_model import holds

from semsearch import Document, Index, load_encoder
from semsearch.addresses import place
from semsearch.errors import IndexStoreError
from semsearch.filters.parsing import parse
from semsearch.records import metadata_field
from semsearch.stores import create_store

WORDS = ["amber", "birch", "cedar", "delta", "fjord", "grove", "Ünï", "東京"]

#: Values of the field `a`, one per document.
VALUES = [
    *(0, 1, 1.0, 1.5, -1, 2**53 + 1, 2.0**53, 2**63 - 1, 1e300),
    *("", "a", "A", "á", "a%b", "ab", "a\\b", 'a"b', "x" * 70, "😀", "2001-05-06"),
    *(True, False, None, [], [None], [1, "a"], [0.5, 3], ["b", "ab"], [[1]], {"b": 1}, [True]),
]
LITERALS = [
    *("0", "1", "1.5", "-1", "9007199254740993", "1e300"),
    *("''", "'a'", "'á'", "'a\"b'", "'a''b'", "'😀'", f"'{'x' * 70}'"),
]
PATTERNS = ["%", "a%", "%b", "A_", "a\\%b", "x%", "", "😀", '%"%']
CONDITIONS = [
    *(f"a {sign} {value}" for sign in ("=", "!=") for value in [*LITERALS, "true", "false"]),
    *(f"a {sign} {value}" for sign in ("<", ">=") for value in LITERALS[:-1]),
    *(f"a {sign} {value}" for sign in ("<=", ">") for value in ("1", "'a'")),
    *(f"a like '{pattern}'" for pattern in PATTERNS),
    *("a is null", "a is not null", "a in ()", "a in (1, 'ab', true)", "a not in (1, 'a')"),
    *("a between 0 and 1", "a between 'a' and 'b'", "a not between 1 and 2"),
    *("not (a = 1 or a like 'a%')", "not (a > 0) and a is not null", "title is null"),
    *("title like 'TITLE _'", "id = 'v3' or id in ('v4', 'text-0')", "metadata.id = 'own'"),
    *('"odd ""name\'] or true or [" = 1', '"b.c" = 2 and not a = 3', "\"b c\" = 'x'"),
]
ODD = {"odd \"name'] or true or [": 1, "b c": "x", "id": "own", "b.c": 2}


def corpus() -> list[Document]:
    found = [
        Document(f"v{number}", f"{WORDS[number % 8]} value", f"Title {number % 10}", {"a": value})
        for number, value in enumerate(VALUES)
    ]
    found.append(Document("odd", "odd names", None, ODD))
    pairs = itertools.product(WORDS, WORDS)
    found += [
        Document(f"text-{number}", f"{left} {right}", None, {"n": number})
        for number, (left, right) in enumerate(pairs)
    ]
    found += [Document(f"same/{name}", "amber birch cedar", "Same") for name in "cab"]
    long = "\t" + "Amber, birch.  Cedar?\n\n\n" * 60 + "\u2003 "
    found.append(Document("länge 東京", long, "東京", {"n": [1, 2]}))
    found.append(Document("longer", "fjord grove. " * 150, None, {"n": 7}))
    return found


CORPUS = corpus()


@pytest.fixture(scope="module")
def encoders():
    return [load_encoder("hashing:64"), load_encoder("hashing:32")]


@pytest.fixture(
    scope="module", params=["milvus-lite", pytest.param("server", marks=pytest.mark.nightly)]
)
def other(request, package):
    """Address of a new index in a folder of another store."""
    if request.param == "server":
        server = request.getfixturevalue("server")
        return lambda folder: server.address()
    package("pymilvus")
    package("milvus_lite")
    return lambda folder: f"milvus-lite:{folder}/lite.db/one"


@pytest.fixture(scope="module")
def create(other, encoders):
    """Open the local store and the other one, new and empty."""

    @contextmanager
    def create(folder):
        with ExitStack() as opened:
            yield [
                opened.enter_context(Index(create_store(place(text), 64, encoders[:1]), encoders))
                for text in (str(folder / "local"), other(folder))
            ]

    return create


@pytest.fixture(scope="module")
def indexes(create, tmp_path_factory):
    """The same documents in both stores."""
    with create(tmp_path_factory.mktemp("results")) as indexes:
        for index in indexes:
            index.add(CORPUS)
        yield indexes


def check_same(indexes, query, k=10, **options):
    local, hits = (index.search(query, k, **options) for index in indexes)
    assert [as_read(hit) for hit in hits] == [as_read(hit) for hit in local]
    assert [hit.score for hit in hits] == pytest.approx([hit.score for hit in local], abs=1e-3)
    return local


def as_read(hit):
    return hit.document_id, hit.chunk.start, hit.text, hit.title, hit.metadata


@pytest.mark.parametrize("query", ["amber", "東京 fjord", "unknown"])
def test_semantic_search(indexes, query):
    """With ties: most documents share their score with others."""
    for k in (1, 3, 1000):
        assert len(check_same(indexes, query, k)) == min(k, len(CORPUS))


@pytest.mark.parametrize("mode", ["bm25", "hybrid"])
@pytest.mark.parametrize("query", ["cedar delta", "東京 fjord", "unknown", "Ünï value"])
def test_bm25_and_hybrid_search(indexes, other, query, mode):
    if other(None).startswith("milvus://"):
        with pytest.raises(IndexStoreError):  # the server, of version 2.3.5, has no BM25
            indexes[1].search(query, mode=mode)
    else:
        check_same(indexes, query, 20, mode=mode)
        check_same(indexes, query, 20, mode=mode, where="n > 3 and n < 40")


def test_many_queries_at_once_and_search_options(indexes, monkeypatch):
    monkeypatch.setattr("semsearch.stores.milvus.search.ROWS_AT_ONCE", 100)  # seven queries
    queries = [f"{left} {right}" for left in WORDS for right in WORDS]
    for left, right in zip(*(index.search_many(queries, 3) for index in indexes), strict=True):
        assert [hit.document_id for hit in left] == [hit.document_id for hit in right]
    check_same(indexes, "amber birch", 60, per_document=2)
    assert len(check_same(indexes, "unknown", 5, where="n >= 59")) == 5
    check_same(indexes, "amber", 5, fold_duplicates=True)
    check_same(indexes, "amber", 5, like={"text-3": 1.0, "same/a": -0.5})
    check_same(indexes, "amber", 5, min_score=0.5)
    check_same(indexes, "amber", 5, offset=7)
    check_same(indexes, "amber", 5, mmr=0.5)


def test_filters_with_every_operator(indexes):
    """Compared with the reference implementation in Python, too."""
    rows = {
        str(one.id): {metadata_field(name): value for name, value in one.metadata.items()}
        | {"id": one.id, "title": one.title}
        for one in CORPUS
    }
    for where in CONDITIONS:
        expected = {name for name, row in rows.items() if holds(parse(where), row)}
        for index in indexes:
            found = index.search("amber", 1000, where=where)
            assert {hit.document_id for hit in found} == expected, (where, index)


def test_a_sequence_of_changes(create, tmp_path, encoders):
    """After each change, deletion, sync and new space, the stores agree and have no faults."""
    documents = [
        Document(f"d{number}", f"{WORDS[number % 8]} {WORDS[number % 3]}", None, {"n": number})
        for number in range(40)
    ]

    def each(change):
        first, other = map(change, indexes)
        if hasattr(first, "seconds"):
            other = replace(other, seconds=first.seconds)
        assert other == first
        check_same(indexes, "amber birch", 50)
        for index in indexes:
            with index.writer() as writer:
                assert writer.verify() == []
        return first

    def synced(corpus):
        def sync(index):
            with index.writer() as writer:
                return writer.sync(corpus, allow_removals=True)

        return sync

    with create(tmp_path) as indexes:
        assert each(lambda index: index.add(documents)).added == 40
        assert each(lambda index: index.add(documents)).unchanged == 40
        retitled = [Document(one.id, one.text, "T", {"n": -1}) for one in documents[:5]]
        assert each(lambda index: index.add(retitled)).metadata_changed == 5
        assert check_same(indexes, "amber", 50, where="n = -1 and title = 'T'")
        rewritten = [Document("d7", "grove " * 100, None, {"n": 7}), Document("new", "fjord")]
        assert each(lambda index: index.add(rewritten)).changed == 1
        assert each(lambda index: index.delete(["d1", "d8"])) == 2
        assert each(lambda index: index.delete(where="n > 30 and not n = 33")) == 8
        assert each(synced([*documents[20:], Document("later", "delta")])).removed > 0
        assert each(lambda index: index.delete(["d39"])) == 1
        for index in indexes:
            with index.writer() as writer:
                writer.add_space(encoders[1])
        check_same(indexes, "cedar", 50, space="hashing-32")
        each(lambda index: index.add([Document("last", "東京 amber")]))
        check_same(indexes, "東京", 50, space="hashing-32")
        for index in indexes:
            with index.writer() as writer:
                writer.drop_space("hashing-64")
        check_same(indexes, "cedar", 50)
        assert each(synced([])).removed > 0
        assert check_same(indexes, "amber") == []
        assert all(list(index) == [] for index in indexes)
