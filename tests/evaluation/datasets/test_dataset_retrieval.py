"""Retrieval sets: published ones, a small example of each format, and users' own questions."""

from __future__ import annotations

import json
import re
import zipfile

import pytest

from semsearch.errors import ArgumentError, SemsearchError
from semsearch.evaluation.datasets import RetrievalSet, load_retrieval_set, read_questions


class TestPublished:
    @pytest.fixture(autouse=True)
    def here(self, data, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(data))

    def test_scifact(self):
        """Wadden et al. 2020, section 3, and BEIR's table 1: 1.1 abstracts a claim."""
        for split, claims, cited in (("train", 809, 919), ("test", 300, 339)):
            found = load_retrieval_set("scifact", split)
            sizes = len(found.documents), len(found.queries)
            assert (found.name, *sizes) == ("scifact", 5183, claims)
            assert sum(map(len, found.qrels.values())) == cited

    def test_cranfield(self):
        """1,400 abstracts, 225 queries, 1,837 judgements: Cleverdon 1967, and its files."""
        found = load_retrieval_set("cranfield")
        assert (len(found.documents), len(found.queries), len(found.qrels)) == (1400, 225, 225)
        assert list(found.queries) == list(found.qrels) == [str(n) for n in range(1, 226)]
        grades = [grade for judged in found.qrels.values() for grade in judged.values()]
        # The file's codes 1, 2, 3, 4 and -1, counted with awk.
        counts = {grade: grades.count(grade) for grade in range(5)}
        assert counts == {4: 128, 3: 387, 2: 734, 1: 363, 0: 225}
        assert [name for name, text in found.documents.items() if not text] == ["471", "995"]


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


CORPUS = lines(
    {"_id": "d1", "title": "Tea", "text": "is brewed."},
    {"_id": "d2", "title": "", "text": "Coffee is roasted."},
    {"_id": 3, "text": "Water runs."},
)
QUERIES = lines({"_id": "q1", "text": "hot drinks"}, {"_id": "q2", "text": "unjudged"})
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t0\n"
FILES = {"corpus.jsonl": CORPUS, "queries.jsonl": QUERIES, "qrels/test.tsv": QRELS}


class TestBeir:
    EXPECTED = (
        "tea",
        {"d1": "Tea\nis brewed.", "d2": "Coffee is roasted.", "3": "Water runs."},
        {"q1": "hot drinks"},
        {"q1": {"d1": 2, "3": 0}},
        "test",
    )

    @pytest.fixture
    def folder(self, put, tmp_path):
        for name, content in FILES.items():
            put(f"tea/{name}", content)
        return tmp_path / "tea"

    def test_folder_and_zip(self, folder, tmp_path):
        assert load_retrieval_set(str(folder)) == self.EXPECTED
        with zipfile.ZipFile(tmp_path / "tea.zip", "w") as archive:
            archive.writestr("__MACOSX/tea/._corpus.jsonl", "")
            for name, content in FILES.items():
                archive.writestr(f"tea/{name}", content)
        assert load_retrieval_set(str(tmp_path / "tea.zip")) == self.EXPECTED

    def test_unknown_ids_are_left_out_and_counted(self, put, folder, caplog):
        put("tea/qrels/test.tsv", QRELS + "q1\tgone\t1\nq9\td1\t1\n")
        assert load_retrieval_set(str(folder)) == self.EXPECTED
        assert "tea: 2 judgements of unknown documents or queries" in caplog.text
        assert "such as query 'q1', document 'gone'" in caplog.text

    @pytest.mark.parametrize(
        ("name", "content", "place"),
        [
            ("corpus.jsonl", CORPUS + "{", "corpus.jsonl:4"),
            ("corpus.jsonl", CORPUS + CORPUS, "corpus.jsonl:4"),
            ("corpus.jsonl", CORPUS.replace('"d2"', '" "'), "corpus.jsonl:2"),
            ("queries.jsonl", QUERIES.replace("hot drinks", " "), "tea: "),
            ("qrels/test.tsv", None, "test"),
            ("qrels/test.tsv", QRELS + "q1\td1\t0.5\n", "test.tsv:4"),
        ],
    )
    def test_wrong_files(self, put, folder, name, content, place):
        if content is None:
            (folder / name).unlink()
        else:
            put(f"tea/{name}", content)
        with pytest.raises(SemsearchError, match=re.escape(place)):
            load_retrieval_set(str(folder))


DOCUMENTS = (
    ".I 1\n.T\nBoiling\nwater\n.A\nSomebody, A.\n.W\nboiling water takes time .\n.X\n1\t5\t1\n"
    ".I 2\n.T\nA kettle\n.W\nA kettle\n  boils faster .\n"
    ".I 3\n.W\nCold tea\n"
)
ASKED = ".I 002\n.W\nhow is water\nboiled\n.N\n a note\n.I 004\n.W\nwhat is cold\n"
BOILED = {"1": 1, "2": 1}


class TestClassical:
    @pytest.fixture
    def load(self, put, tmp_path):
        def loaded(judgements, documents=DOCUMENTS, queries=ASKED, name="X.REL"):
            put("x/X.ALL", documents)
            put("x/X.QRY", queries)
            put(f"x/{name}", judgements)
            return load_retrieval_set(str(tmp_path / "x"))

        return loaded

    def test_texts(self, load):
        found = load("2 1 1\n")
        assert found.documents == {
            "1": "Boiling water\nboiling water takes time .",
            "2": "A kettle boils faster .",
            "3": "Cold tea",
        }
        assert (found.name, found.queries) == ("x", {"2": "how is water boiled"})

    @pytest.mark.parametrize(
        ("judgements", "expected"),
        [
            ("2 1 1\n2 2 3\n4 3 1\n", {"2": {"1": 1, "2": 3}, "4": {"3": 1}}),
            ("2 0 1 1\n2 0 2 1\n4 0 3 1\n", {"2": BOILED, "4": {"3": 1}}),  # MED
            ("     2      1 0 0.000000\n     2      2\t0\t0.000000\n", {"2": BOILED}),  # CISI
            ("2 1 1\n2 1 3\n2 1 2\n", {"2": {"1": 3}}),  # the higher counts
            ("1 1 1\n2 3 1\n", {"1": {"1": 1}, "2": {"3": 1}}),  # queries by order
        ],
    )
    def test_judgements(self, load, judgements, expected):
        assert load(judgements).qrels == expected

    def test_cranfields_grades(self, load):
        found = load("2 1 1\n2 2 4\n2 3 -1\n", name="cranqrel")
        assert found.qrels == {"2": {"1": 4, "2": 1, "3": 0}}
        with pytest.raises(SemsearchError):
            load("2 1 7\n", name="cranqrel")

    def test_wrong_files(self, load):
        for judgements, documents, place in (
            ("2 77 1\n", DOCUMENTS, None),
            ("2 one 1\n", DOCUMENTS, r"X\.REL:1"),
            ("2 1 1\n", DOCUMENTS + ".I 1\n.W\nagain\n", r"X\.ALL:20"),
        ):
            with pytest.raises(SemsearchError, match=place):
                load(judgements, documents)


STARS = "*" * 44


def lisa_record(number, *lines):
    return "\n".join([f"Document {number:4}", *lines, STARS, ""])


class TestLisa:
    """The layout of the published collection, with made-up texts."""

    KETTLES = ("REPORTS ON KETTLES. A KETTLE BOILS", "AND WHISTLES.")
    DOCUMENTS = lisa_record(
        1, "KETTLES IN THE READING ROOM OF A", "LIBRARY.", " " * 80, *KETTLES
    ) + lisa_record(2, "TEA ON SHELVES.", "", "TEA KEEPS IN TINS.")
    MORE = (
        lisa_record(501, "CARDS.", "", "CARDS ARE SORTED BY HAND.", "", "ONCE A YEAR.")
        + f"WITHOUT ITS NUMBER.\n\nLOST.\n{STARS}\n"
        + lisa_record(2, "TEA AGAIN.", "", "ANOTHER ONE OF THAT NUMBER.")
    )
    QUERIES = "1\nI AM INTERESTED IN\nBOILING WATER. #\n12\nCATALOGUE CARDS #\n"
    JUDGEMENTS = "    1      2    1    2    \n    12     3    501   1      \n    2   \n"

    @pytest.fixture
    def folder(self, put, tmp_path):
        for name, content in (("0.001", self.DOCUMENTS), ("0.501", self.MORE)):
            put(f"lisa/LISA{name}", content)
        put("lisa/LISA.QUE", self.QUERIES)
        put("lisa/LISARJ.NUM", self.JUDGEMENTS)
        put("lisa/README", "About LISA.")
        return tmp_path / "lisa"

    def test_folder(self, put, folder, caplog):
        assert load_retrieval_set(str(folder)) == (
            "lisa",
            {
                "1": "KETTLES IN THE READING ROOM OF A LIBRARY.\n"
                "REPORTS ON KETTLES. A KETTLE BOILS AND WHISTLES.",
                "2": "TEA ON SHELVES.\nTEA KEEPS IN TINS.",
                "501": "CARDS.\nCARDS ARE SORTED BY HAND. ONCE A YEAR.",
            },
            {"1": "I AM INTERESTED IN BOILING WATER.", "12": "CATALOGUE CARDS"},
            {"1": {"1": 1, "2": 1}, "12": {"501": 1, "1": 1, "2": 1}},
            "test",
        )
        record, repeated = caplog.messages
        assert "LISA0.501:8: a record without 'Document N' is left out" in record
        assert repeated == "lisa: 1 documents with duplicate numbers are left out"
        put("lisa/LISARJ.NUM", "1 1\nx\n")
        with pytest.raises(SemsearchError, match=r"LISARJ\.NUM"):
            load_retrieval_set(str(folder))


class TestJudgedTables:
    def test_csv(self, put):
        text = "Query,Passage,Relevance\nhot?,tea,2\nhot?,ice,0\ncold?,ice,1.0\n"
        assert load_retrieval_set(str(put("hot.csv", text))) == (
            "hot",
            {"d1": "tea", "d2": "ice"},
            {"q1": "hot?", "q2": "cold?"},
            {"q1": {"d1": 2, "d2": 0}, "q2": {"d2": 1}},
            "test",
        )

    def test_wrong_files(self, put):
        for text, place in (
            ("a,b,c\nx,y,1\n", "h.csv"),
            ("query,passage,relevance\nx,y,1\nx, ,0\n", "h.csv:3"),
        ):
            with pytest.raises(SemsearchError, match=re.escape(place)):
                load_retrieval_set(str(put("h.csv", text)))


QUESTIONS = {
    "queries.jsonl": '{"_id": "q1", "text": "cats"}\n{"_id": 2, "text": "no \\"dogs\\""}\n',
    "queries.csv": 'query-id,text\nq1,cats\n2,"no ""dogs"""\n',
    "queries.tsv": 'q1\tcats\n2\tno "dogs"\n',
    "topics.tsv": 'qid\tquestion\n2\tno "dogs"\nq1\tcats\n',
}
JUDGED = {
    "qrels.txt": "q1 0 d1 2\nq1 0 d2 1\n2 0 d2 1\n2\t0 d3  0\n",
    "test.tsv": "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\n2\td2\t1\n2\td3\t0\n",
    "judged.csv": "relevance,query,document\n2,q1,d1\n1.0,q1,d2\n1,2,d2\n0,2,d3\n",
}
READ = ({"q1": "cats", "2": 'no "dogs"'}, {"q1": {"d1": 2, "d2": 1}, "2": {"d2": 1, "d3": 0}})
#: Files of queries and of judgements that are read together.
PAIRS = [*((one, "qrels.txt") for one in QUESTIONS), *(("queries.csv", one) for one in JUDGED)]


def has_document(name):
    return name in {"d1", "d2", "d3"}


@pytest.fixture
def files(tmp_path):
    for name, text in (QUESTIONS | JUDGED).items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("queries", "qrels"), PAIRS)
def test_formats(files, queries, qrels):
    found = read_questions(files / queries, files / qrels, has_document)
    assert (found.queries, found.qrels) == READ
    assert found == RetrievalSet(queries.split(".")[0], {}, *READ)


def test_queries_without_judgements_are_left_out(files):
    (files / "more.csv").write_text("id,text\nq1,cats\nq8,\nq9,birds\n2,x\n")
    found = read_questions(files / "more.csv", files / "qrels.txt", has_document)
    assert list(found.queries) == ["q1", "2"]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("queries.csv", "a,b,c\n1,2,3\n", "queries.csv"),
        ("queries.csv", "id,text\nq1,a\nq1,b\n", "queries.csv:3"),
        ("queries.csv", "id,text\nx,a\n", "judged.csv"),
        ("queries.csv", 'id,text\nq1,a\n2," "\n', "queries.csv"),
        ("judged.csv", "q1,d1,1\n", "judged.csv"),
        ("judged.csv", "qid,docid,rel\nq1,d1,yes\n", "judged.csv:2"),
        ("judged.csv", "q1 0 d1 0.5\n", "judged.csv:1"),
        ("judged.csv", "q1 0 d1 1\nq1 d1 1\n", "judged.csv:2"),
        ("judged.csv", "qid,docid,rel\nq1,d1,1\n2,d8,1\n2,d9,1\n", "judged.csv"),
    ],
)
def test_mistakes(files, name, text, place):
    (files / name).write_text(text)
    with pytest.raises(SemsearchError, match=re.escape(place)):
        read_questions(files / "queries.csv", files / "judged.csv", has_document)


def test_unusable_arguments(files):
    for queries, error in ((3, ArgumentError), (files / "none.csv", SemsearchError)):
        with pytest.raises(error):
            read_questions(queries, files / "qrels.txt", has_document)
