"""An index on milvus-lite: graphs, loading, words, refusals, and every command."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from semsearch import Document, Index
from semsearch.cli import main
from semsearch.errors import BadRowError
from semsearch.stores.milvus.catalogue import read_catalogue, write_catalogue
from semsearch.stores.milvus.connection import Connection


def run(*arguments, code=0):
    done = CliRunner().invoke(main, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.output


class TestGraph:
    def test_a_filter_finds_what_the_graph_does_not_lead_to(self, index, monkeypatch):
        documents = [Document(f"d{n}", f"red fish {n}", None, {"year": n}) for n in range(20)]
        index.add([*documents, Document("long", "red fish " * 400, None, {"year": 5})])
        where = "year > 3 and year < 12"
        exact = [index.search("red fish 7", k, where=where) for k in (5, 50)]
        monkeypatch.setattr("semsearch.stores.milvus.writer.FLAT_NUMBERS", 0)
        with index.writer() as writer:
            writer.optimise()
        original = Connection.search

        def search(self, *arguments):
            nonlocal left
            [hits] = original(self, *arguments)
            left, some = 0, hits[:left]
            return [some]

        monkeypatch.setattr(Connection, "search", search)
        for k, hits in zip((5, 50), exact, strict=True):
            left = 1
            again = index.search("red fish 7", k, where=where)
            assert [hit.document_id for hit in again] == [hit.document_id for hit in hits]
            assert [hit.score for hit in again] == pytest.approx([hit.score for hit in hits])


class TestWords:
    """BM25; test_congruence and test_milvus_results compare its ranking with the local store's."""

    def test_later_documents_are_scored_like_the_others(self, lite, tmp_path):
        """milvus-lite's own BM25 would count the words of each session separately."""
        texts = [f"amber birch {number} {'cedar ' * (number % 3)}" for number in range(60)]
        new = Document("new", "amber cedar fjord")
        hits = []
        for path in (lite, str(tmp_path / "local")):
            with Index.create(path, "hashing:64") as index:
                index.add(Document(f"d{number}", text) for number, text in enumerate(texts))
            with Index.open(path) as index:
                index.add([new])
                hits.append(index.search("fjord cedar 7", 20, mode="bm25"))
        ours, local = ([(hit.document_id, hit.score) for hit in found] for found in hits)
        assert [name for name, _ in ours] == [name for name, _ in local]
        assert [score for _, score in ours] == pytest.approx(
            [score for _, score in local], rel=0.01
        )

    def test_a_language(self, index, lite):
        index.close()
        run("index", "--language", "english", "--index", lite)
        with Index.open(lite) as again:
            hits = again.search("swimming the", mode="bm25")
            assert sorted(hit.document_id for hit in hits) == ["b", "c"]
            with again.writer() as writer:
                assert writer.verify() == []

    def test_counts_are_rebuilt_after_an_interrupted_commit(self, index):
        connection = index._store._connection
        catalogue = read_catalogue(connection)
        connection.call("delete", "one_terms", filter="term > 0")
        with index.writer() as writer:
            assert len(writer.verify()) == 1
        assert index.search("bird", mode="bm25") == []
        write_catalogue(connection, content=catalogue.content._replace(clean=False))
        with index.writer() as writer:
            assert writer.verify() == []
        assert [hit.document_id for hit in index.search("bird", mode="bm25")] == ["a"]


class TestRefusals:
    @pytest.mark.parametrize(
        "arguments",
        [
            ["query", "fish -red", "--mode", "bm25"],
            ["query", "fish", "--require", "red fish"],
            ["map"],
            ["compact"],
            ["index", "--filter-column", "year"],
            ["index", "--index-type", "ivf"],
            ["index", "--recall", "0.9"],
        ],
    )
    def test_unsupported_commands_fail(self, index, lite, arguments):
        assert run(*arguments, "--index", lite, code=1).endswith("[unsupported-by-store]\n")

    def test_documents_too_large_for_a_field_are_bad_rows(self, index):
        for document, size in [
            (Document("x", "y" * 70_000), "70,000 bytes"),
            (Document("x", "y", "t" * 70_000), "70,002 bytes"),
            (Document("x", "y", None, {"a": "é" * 40_000}), "80,008 bytes"),
            (Document("x", "y", None, {"a": list(range(3000))}), "filters"),
            (Document("x", "y" + " " * 70_000), "70,000 bytes"),
        ]:
            with pytest.raises(BadRowError, match=f"^document 'x': .*{size}"):
                index.add([document])
        bad = []
        others = [Document("d", "a green bird"), Document("e", "fish " * 20_000)]
        with index.writer(on_bad_row=bad.append) as writer:
            assert writer.upsert([others[0], document, others[1]]).added == 2
        assert len(bad) == 1
        assert [one.id for one in index] == ["a", "b", "c", "d", "e"]
        # Its text is larger than a field, but what lies outside its passages is not.
        assert index.add([Document("e", "fish " * 20_000, "Fish")]).metadata_changed == 1
