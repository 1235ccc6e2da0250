"""Sync removes only documents that the corpus lacks, and many of them only if allowed."""

from __future__ import annotations

import pytest

from semsearch import Corpus, Document, Index
from semsearch.errors import CorpusError, IndexNotFoundError, RemovalError
from semsearch.indexing.preview import preview_delete, preview_index

HUNDRED = [Document(f"d{number}", f"Text {number}.") for number in range(100)]


def ignore(error):
    """Continue after a bad row."""


@pytest.fixture
def index(tmp_path, hashing):
    with Index.create(tmp_path / "hundred", [hashing]) as index:
        index.add(HUNDRED)
        yield index


def sync(index, corpus, **arguments):
    with index.writer(on_bad_row=ignore) as writer:
        return writer.sync(corpus, **arguments)


def csv(tmp_path, rows):
    file = tmp_path / "corpus.csv"
    file.write_bytes("\n".join(["id,text", *rows]).encode("utf-8", "surrogateescape"))
    return Corpus(file, on_bad_row=ignore)


def numbered(first, last):
    return [f"d{number},Text {number}." for number in range(first, last)]


class TestSkippedRows:
    def test_a_document_whose_row_is_skipped_or_repeated_stays(self, index, tmp_path):
        corpus = csv(tmp_path, ["d0,", "d1,Text 1.", *numbered(5, 100), "d7,Text 7 again."])
        summary = sync(index, corpus)
        assert (summary.removed, summary.kept) == (3, 0)  # d2, d3, d4
        kept = {document.id for document in HUNDRED} - {"d2", "d3", "d4"}
        assert {document.id for document in index} == kept

    @pytest.mark.parametrize(
        "row", ["déü\udce9,A damaged id.", "d99,Text 99.,too,many,cells", ",No id."]
    )
    def test_skipped_rows_with_unknown_ids_prevent_removals(self, index, tmp_path, caplog, row):
        summary = sync(index, csv(tmp_path, [*numbered(0, 90), row]), allow_removals=True)
        assert (summary.removed, summary.kept, len(index)) == (0, 10, 100)
        assert "10 documents" in caplog.text


class TestBrokenCorpora:
    @pytest.mark.parametrize(
        ("name", "content"),
        [("empty.csv", b""), ("empty.json", b"[]"), ("cut.csv", b'id,text\nd1,Text 1.\nd2,"Text')],
    )
    def test_nothing_is_removed(self, index, tmp_path, name, content):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CorpusError):
            sync(index, Corpus(tmp_path / name))
        assert len(index) == 100

    def test_no_documents_at_all(self, index):
        index.delete([document.id for document in HUNDRED[3:]])
        with pytest.raises(RemovalError):
            sync(index, [])
        assert len(index) == 3
        assert sync(index, [], allow_removals=True).removed == 3


class TestManyRemovals:
    def test_at_most_a_tenth_is_removed(self, index):
        with pytest.raises(RemovalError, match=r"11 of 100 .*'d0', .*'d4' and 6 more"):
            sync(index, [*HUNDRED[11:], Document("new", "A new one.")])
        assert len(index) == 101  # the added document stays
        index.delete(["new"])
        assert sync(index, HUNDRED[10:]).removed == 10
        index.delete([document.id for document in HUNDRED[21:]])
        assert sync(index, HUNDRED[20:21]).removed == 10  # ten can always be removed

    def test_a_sync_without_changes_does_not_write_the_database(self, tmp_path):
        with Index.create(tmp_path / "new", "hashing:16") as index:
            index.add(HUNDRED)
        file = tmp_path / "new" / "index.sqlite"
        before = file.read_bytes(), file.stat().st_mtime_ns
        with Index.open(tmp_path / "new") as index:
            assert sync(index, HUNDRED).unchanged == 100
        assert (file.read_bytes(), file.stat().st_mtime_ns) == before

    def test_a_callback_decides(self, index):
        asked = []

        def ask(removal):
            asked.append((removal.documents, removal.total))
            return len(asked) == 2

        with pytest.raises(RemovalError):
            sync(index, HUNDRED[:1], allow_removals=ask)
        assert len(index) == 100
        assert sync(index, HUNDRED[:1], allow_removals=ask).removed == 99
        assert asked == [(99, 100)] * 2

    def test_deleting(self, index):
        with pytest.raises(RemovalError, match="100 of 100"):
            index.delete(where="id like 'd%'", allow_removals=False)
        with pytest.raises(RemovalError, match="11 of 100"):
            index.delete([document.id for document in HUNDRED[:11]], allow_removals=False)
        assert index.delete(["d0"], allow_removals=False) == 1
        with index.writer() as writer:
            assert writer.delete(where="id like 'd%'") == 99  # in Python, allowed by default


class TestPreview:
    def corpus(self, tmp_path):
        rows = ["d0,Changed.", *numbered(1, 80), "d80,", "new,New.", "new,Again."]
        return csv(tmp_path, rows)

    def test_equals_the_real_run(self, index, tmp_path):
        corpus = self.corpus(tmp_path)
        preview = preview_index(index.path, iter(corpus), sync=True, on_bad_row=ignore)
        summary = sync(index, corpus, allow_removals=True)
        counts = {change.value: count for change, count in preview.changes.items()}
        assert counts == {"added": 1, "changed": 1, "unchanged": 79}
        assert (summary.added, summary.changed, summary.unchanged) == (1, 1, 79)
        assert (preview.removal.documents, preview.removal.total) == (19, 100)
        assert preview.removal.examples == ("d81", "d82", "d83", "d84", "d85")
        assert summary.removed == 19

    def test_nothing_is_written(self, index, tmp_path):
        index.close()

        def state():
            return {file.name: file.read_bytes() for file in index.path.iterdir()}

        before = state()
        preview_index(index.path, iter(self.corpus(tmp_path)), sync=True, on_bad_row=ignore)
        assert preview_delete(index.path, None, "id like 'd1%'").documents == 11
        assert state() == before

    def test_without_an_index_all_are_new(self, tmp_path):
        path = tmp_path / "none" / "yet"
        preview = preview_index(path, iter(self.corpus(tmp_path)), sync=True, on_bad_row=ignore)
        assert {change.value: count for change, count in preview.changes.items()} == {"added": 81}
        assert preview.removal.documents == 0
        with pytest.raises(IndexNotFoundError):
            preview_delete(path, ["a"], None)
        assert not path.parent.exists()
