"""Retrieval sets: published ones, and a small example of each format."""

from __future__ import annotations

import gzip
import json
import logging
import sys
import zipfile
from typing import ClassVar

import pytest

from semsearch.corpus import Corpus
from semsearch.datasets import load_retrieval_set, retrieval_names
from semsearch.errors import DatasetError, DatasetNotFoundError

pytestmark = pytest.mark.slow


class TestPublished:
    @pytest.fixture(autouse=True)
    def here(self, data, monkeypatch):
        monkeypatch.setenv("SEMSEARCH_DATA", str(data))

    @pytest.mark.parametrize(
        ("split", "claims", "cited"), [("train", 809, 919), ("test", 300, 339)]
    )
    def test_scifact(self, split, claims, cited):
        """Wadden et al. 2020, section 3, and BEIR's table 1: 1.1 abstracts a claim."""
        found = load_retrieval_set("scifact", split)
        assert (found.name, len(found.documents), len(found.queries)) == ("scifact", 5183, claims)
        assert sum(map(len, found.qrels.values())) == cited

    def test_scifact_is_indexed_as_it_is_evaluated(self, data, tmp_path):
        with zipfile.ZipFile(data / "ir" / "scifact" / "scifact.zip") as archive:
            file = archive.extract("corpus_train.csv", tmp_path)
        corpus = Corpus(file, text_columns=["title", "abstract"])
        indexed = {document.id: document.text for document in corpus}
        assert indexed == load_retrieval_set("scifact").documents

    def test_cranfield(self, data):
        """1,400 abstracts, 225 queries, 1,837 judgements: Cleverdon 1967, and its files."""
        found = load_retrieval_set("cranfield")
        assert (len(found.documents), len(found.queries), len(found.qrels)) == (1400, 225, 225)
        assert list(found.queries) == list(found.qrels) == [str(n) for n in range(1, 226)]
        grades = [grade for judged in found.qrels.values() for grade in judged.values()]
        # The file's codes 1, 2, 3, 4 and -1, counted with awk.
        counts = {grade: grades.count(grade) for grade in range(5)}
        assert counts == {4: 128, 3: 387, 2: 734, 1: 363, 0: 225}
        assert [name for name, text in found.documents.items() if not text] == ["471", "995"]
        by_path = load_retrieval_set(str(data / "ir" / "cran"))
        assert by_path == found._replace(name="cran")

    def test_cranfields_queries_are_numbered_by_order(self):
        """A query's words are more frequent in its judged documents than in those of others."""
        found = load_retrieval_set("cranfield")
        words = {name: set(text.split()) for name, text in found.documents.items()}

        def shared(query, judged):
            asked = {word for word in found.queries[query].split() if len(word) > 4}
            return sum(len(asked & words[name]) for name in judged) / len(judged)

        own = sum(shared(query, judged) for query, judged in found.qrels.items())
        names = list(found.queries)
        others = zip(names, names[100:] + names[:100], strict=True)
        assert own > 3 * sum(shared(query, found.qrels[other]) for query, other in others)

    def test_a_title_occurs_once(self):
        text = load_retrieval_set("cranfield").documents["1"]
        assert text.count("aerodynamics of a wing in a slipstream") == 1


class TestNames:
    def test_known(self):
        assert retrieval_names() == ["scifact", "beir-scifact", "cranfield"]

    @pytest.mark.parametrize("name", ["scifact", "beir-scifact", "cranfield"])
    def test_a_missing_set(self, tmp_path, monkeypatch, name):
        monkeypatch.setenv("SEMSEARCH_DATA", str(tmp_path))
        with pytest.raises(DatasetNotFoundError, match=f"semsearch datasets fetch {name}$"):
            load_retrieval_set(name)

    @pytest.mark.parametrize("name", ["scifact", "cranfield"])
    def test_unknown_splits(self, name):
        with pytest.raises(DatasetError, match="no split 'dev'"):
            load_retrieval_set(name, "dev")

    def test_a_misspelt_name(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(DatasetNotFoundError, match=r"'cran' \(known: scifact, "):
            load_retrieval_set("cran")

    def test_a_folder_of_other_files(self, tmp_path):
        with pytest.raises(DatasetError, match="neither corpus.jsonl"):
            load_retrieval_set(str(tmp_path))


def lines(*records):
    return "".join(f"{json.dumps(record)}\n" for record in records)


CORPUS = lines(
    {"_id": "d1", "title": "Tea", "text": "is brewed."},
    {"_id": "d2", "title": "", "text": "Coffee is roasted."},
    {"_id": 3, "text": "Water runs."},
)
QUERIES = lines({"_id": "q1", "text": "hot drinks"}, {"_id": "q2", "text": "unjudged"})
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\t3\t0\n"


class TestBeir:
    @pytest.fixture
    def folder(self, put, tmp_path):
        put("tea/corpus.jsonl", CORPUS)
        put("tea/queries.jsonl", QUERIES)
        put("tea/qrels/test.tsv", QRELS)
        return tmp_path / "tea"

    EXPECTED = (
        "tea",
        {"d1": "Tea\nis brewed.", "d2": "Coffee is roasted.", "3": "Water runs."},
        {"q1": "hot drinks"},
        {"q1": {"d1": 2, "3": 0}},
        "test",
    )

    def test_folder(self, folder):
        assert load_retrieval_set(str(folder)) == self.EXPECTED

    def test_documents_are_indexed_as_they_are_evaluated(self, put, folder):
        repeated = {"_id": "d4", "title": "Milk", "text": "Milk is\npoured. "}
        corpus = put("tea/corpus.jsonl", CORPUS + lines(repeated))
        documents = Corpus(corpus, text_columns=["title", "text"])
        indexed = {document.id: document.text for document in documents}
        assert indexed == load_retrieval_set(str(folder)).documents

    def test_gzip(self, put, tmp_path):
        for name, text in [
            ("corpus.jsonl", CORPUS),
            ("queries.jsonl", QUERIES),
            ("qrels/test.tsv", QRELS),
        ]:
            put(f"tea/{name}.gz", gzip.compress(text.encode()))
        assert load_retrieval_set(str(tmp_path / "tea")) == self.EXPECTED

    @pytest.mark.parametrize(
        ("inner", "other"),
        [("", "notes/x"), ("tea/", "x"), ("tea/", "__MACOSX/tea/._corpus.jsonl")],
    )
    def test_zip(self, tmp_path, inner, other):
        with zipfile.ZipFile(tmp_path / "tea.zip", "w") as archive:
            archive.writestr(other, "")
            archive.writestr(f"{inner}corpus.jsonl", CORPUS)
            archive.writestr(f"{inner}queries.jsonl", QUERIES)
            archive.writestr(f"{inner}qrels/test.tsv", QRELS)
        assert load_retrieval_set(str(tmp_path / "tea.zip")) == self.EXPECTED

    def test_byte_order_marks_and_carriage_returns(self, put, folder):
        put("tea/corpus.jsonl", "\ufeff" + CORPUS.replace("\n", "\r\n"))
        put("tea/qrels/test.tsv", "\ufeff" + QRELS.replace("\n", "\r\n"))
        assert load_retrieval_set(str(folder)) == self.EXPECTED

    def test_relevant_documents_without_a_text_are_reported(self, put, folder, caplog):
        put("tea/corpus.jsonl", CORPUS + '{"_id": "d8", "text": " "}\n{"_id": "d9", "text": ""}\n')
        put("tea/qrels/test.tsv", QRELS + "q1\td8\t1\nq1\td9\t0\n")
        with caplog.at_level(logging.WARNING):
            load_retrieval_set(str(folder))
        assert (
            "tea: 1 relevant document without text, which no system can find, such as 'd8'"
            in caplog.text
        )

    def test_unknown_ids_are_left_out_and_counted(self, put, folder, caplog):
        put("tea/qrels/test.tsv", QRELS + "q1\tgone\t1\nq9\td1\t1\n")
        with caplog.at_level(logging.WARNING):
            assert load_retrieval_set(str(folder)) == self.EXPECTED
        assert "tea: 2 judgements of unknown documents or queries" in caplog.text
        assert "such as query 'q1', document 'gone'" in caplog.text

    @pytest.mark.parametrize(
        "qrels",
        [
            "\n" + QRELS,
            QRELS.replace("query-id", "Query-ID"),
            QRELS.replace("query-id\tcorpus-id", "query_id\tcorpus_id"),
            QRELS.partition("\n")[2],
            QRELS.replace("\n", "\t\n"),
            QRELS.replace("\t", " \t "),
        ],
        ids=["blank line", "upper case", "underscores", "no header", "trailing tabs", "spaces"],
    )
    def test_judgements(self, put, folder, qrels):
        put("tea/qrels/test.tsv", qrels)
        assert load_retrieval_set(str(folder)) == self.EXPECTED

    def test_ids_are_stripped(self, put, folder):
        put("tea/queries.jsonl", QUERIES.replace("q1", "q1 "))
        put("tea/corpus.jsonl", CORPUS.replace("d1", " d1"))
        assert load_retrieval_set(str(folder)) == self.EXPECTED

    @pytest.mark.parametrize(
        ("name", "content", "reason"),
        [
            ("corpus.jsonl", "", "no judgement refers to"),
            ("corpus.jsonl", CORPUS + "{", r"corpus\.jsonl:4: not JSON"),
            ("corpus.jsonl", "[1]\n", "not a JSON object"),
            ("corpus.jsonl", '{"id": "a", "text": "b"}\n', r"no '_id' and 'text' \(fields: id, te"),
            ("corpus.jsonl", CORPUS + CORPUS, r"corpus\.jsonl:4: duplicate id 'd1'"),
            ("corpus.jsonl", CORPUS.replace('"d2"', '" "'), r"corpus\.jsonl:2: empty id"),
            ("corpus.jsonl", CORPUS.replace("d2", r"d\u0000"), r"jsonl:2: id contains a NUL char"),
            ("corpus.jsonl", CORPUS.replace("Coffee", r"\ud800"), r"jsonl:2: id or text holds an"),
            ("queries.jsonl", QUERIES.replace("q2", r"\udc80"), r"queries\.jsonl:2: id or text"),
            ("queries.jsonl", QUERIES.replace("hot drinks", " "), "tea: the query 'q1' is empty"),
            ("queries.jsonl", None, r"has no queries\.jsonl"),
            ("qrels/test.tsv", None, r"has no qrels/test\.tsv \(splits: none\)"),
            ("qrels/test.tsv", "", "no judgement refers to"),
            ("qrels/test.tsv", "q1\td1\n", r"test\.tsv:1: 2 tab-separated columns, not 3"),
            ("qrels/test.tsv", "q1\td1\tgood\n", "the relevance is not an integer: 'good'"),
            ("qrels/test.tsv", "q1\td1\t0.5\n", "not an integer"),
        ],
    )
    def test_wrong_files(self, put, folder, name, content, reason):
        if content is None:
            (folder / name).unlink()
        else:
            put(f"tea/{name}", content)
        with pytest.raises(DatasetError, match=reason):
            load_retrieval_set(str(folder))

    def test_splits_are_listed(self, folder):
        with pytest.raises(DatasetError, match=r"no qrels/dev\.tsv \(splits: test\)"):
            load_retrieval_set(str(folder), "dev")

    def test_a_damaged_archive(self, put):
        with pytest.raises(DatasetError, match=r"tea\.zip is damaged"):
            load_retrieval_set(str(put("tea.zip", "no zip")))


DOCUMENTS = """.I 1
.T
Boiling
water
.A
Somebody, A.
.W
boiling water takes time .
.X
1\t5\t1
.I 2
.T
A kettle
.W
A kettle
  boils faster .
.I 3
.W
Cold tea
"""
ASKED = """.I 002
.W
how is water
boiled
.N
 a note
.I 004
.W
what is cold
"""
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
            ("02 0001  0 0\n02 0002  0 0\n", {"2": BOILED}),  # CACM
            ("2 1\n2 2\n", {"2": BOILED}),
            ("2   1   2\n\n4   3\n", {"2": BOILED, "4": {"3": 1}}),  # TIME
            ("2\n  1\n  2\n   /\n4\n 3\n   /\n", {"2": BOILED, "4": {"3": 1}}),  # NPL
            ("2 1 1\n2 1 3\n2 1 2\n", {"2": {"1": 3}}),  # the higher counts
            ("1 1 1\n2 3 1\n", {"1": {"1": 1}, "2": {"3": 1}}),  # queries by order
            ("\ufeff2 1 1\r\n", {"2": {"1": 1}}),
        ],
    )
    def test_judgements(self, load, judgements, expected):
        assert load(judgements).qrels == expected

    def test_queries_by_order(self, load):
        assert load("1 1 1\n2 3 1\n").queries == {"1": "how is water boiled", "2": "what is cold"}

    def test_cranfields_grades(self, load):
        found = load("2 1 1\n2 2 4\n2 3 -1\n", name="cranqrel")
        assert found.qrels == {"2": {"1": 4, "2": 1, "3": 0}}
        with pytest.raises(DatasetError, match=r"cranqrel:1: 7 is not one of Cranfield's codes"):
            load("2 1 7\n", name="cranqrel")

    def test_time(self, load):
        documents = "*TEXT 017 01/04/63 PAGE 020\n\nFIRST ONE\n\n*TEXT 020 X\n\nSECOND\n\n*STOP\n"
        queries = "*FIND     1\n\n WHO IS\n\nFIRST\n\n*FIND     2\n\nLAST\n\n*STOP\n"
        found = load("1   1 2\n\n2   2\n", documents, queries)
        assert found.documents == {"1": "FIRST ONE", "2": "SECOND"}
        assert found.queries == {"1": "WHO IS FIRST", "2": "LAST"}
        assert found.qrels == {"1": BOILED, "2": {"2": 1}}

    def test_npl(self, load):
        documents = "1\nfields\nof a coil\n   /\n2\na wave\n   /\n"
        found = load("1\n 2\n/\n", documents, "1\nWAVES\n/\n")
        assert found.documents == {"1": "fields of a coil", "2": "a wave"}
        assert (found.queries, found.qrels) == ({"1": "WAVES"}, {"1": {"2": 1}})

    def test_latin_1(self, load):
        found = load(
            "2 1 1\n", DOCUMENTS.encode().replace(b"Somebody", b"x") + b".I 4\n.W\nth\xe9\n"
        )
        assert found.documents["4"] == "thé"

    def test_unknown_ids_are_counted(self, load, caplog):
        with caplog.at_level(logging.WARNING):
            assert load("2 1 1\n2 77 1\n99 1 1\n").qrels == {"2": {"1": 1}}
        assert "x: 2 judgements" in caplog.text

    @pytest.mark.parametrize(
        ("arguments", "reason"),
        [
            ([""], "no judgement refers to"),
            (["2 77 1\n"], "no judgement refers to"),
            (["2 one 1\n"], r"X\.REL:1: judgements must be numbers, not '2 one 1'"),
            (["2 1 0.5\n"], "not an integer"),
            (["2 1 1\n", "once upon a time\n"], "must begin with"),
            (["2 1 1\n", ""], "must begin with"),
            (["2 1 1\n", DOCUMENTS + ".I 1\n.W\nagain\n"], r"X\.ALL:20: duplicate id 1"),
            (["2 1 1\n", "1\nfields\n"], "does not end with a slash"),
            (["2 1 1\n", "1\nfields\n/\n/\n"], "does not begin with a number"),
        ],
    )
    def test_wrong_files(self, load, arguments, reason):
        with pytest.raises(DatasetError, match=reason):
            load(*arguments)

    def test_two_files_of_documents(self, load, put):
        put("x/Y.ALL", DOCUMENTS)
        with pytest.raises(
            DatasetError, match=r"must have one file of documents \(found: X\.ALL, Y\.ALL"
        ):
            load("2 1 1\n")


STARS = "*" * 44


class TestLisa:
    """The layout of the published collection, with made-up texts."""

    FILES: ClassVar = {
        "LISA0.001": f"""Document    1
KETTLES IN THE READING ROOM OF A
LIBRARY.
                                                                                \n\
REPORTS ON KETTLES. A KETTLE BOILS
AND WHISTLES.
{STARS}
Document    2
TEA ON SHELVES.

TEA KEEPS IN TINS.
{STARS}
""",
        "LISA0.501": f"""Document  501
CARDS.

CARDS ARE SORTED BY HAND.

ONCE A YEAR.
{STARS}
Document    2
TEA AGAIN.

ANOTHER ONE OF THAT NUMBER.
{STARS}
""",
        "LISA.QUE": "1\nI AM INTERESTED IN\nBOILING WATER. #\n12\nCATALOGUE CARDS #\n",
        "LISARJ.NUM": "           1           2           1           2        \n"
        "          12           3         501           1                \n"
        "           2           \n",
        "LISA.REL": "Query 1\n2 Relevant Refs:\n1 2 -1\n",
        "README": "About LISA.",
    }

    @pytest.fixture
    def folder(self, put, tmp_path):
        for name, content in self.FILES.items():
            put(f"lisa/{name}", content)
        return tmp_path / "lisa"

    def test_folder(self, folder, caplog):
        with caplog.at_level(logging.WARNING):
            found = load_retrieval_set(str(folder))
        assert found == (
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
        assert "lisa: 1 documents with duplicate numbers are left out" in caplog.text
        with pytest.raises(DatasetError, match=r"lisa has no split 'dev' \(splits: test\)"):
            load_retrieval_set(str(folder), "dev")

    def test_carriage_returns(self, folder, put):
        for name, content in self.FILES.items():
            put(f"lisa/{name}", content.replace("\n", "\r\n"))
        assert load_retrieval_set(str(folder)).queries["12"] == "CATALOGUE CARDS"

    @pytest.mark.parametrize(
        ("name", "content", "reason"),
        [
            ("LISA0.001", "KETTLES.\n", r"LISA0\.001:1: a document must begin with 'Document N'"),
            ("LISA.QUE", "CARDS #\n", r"LISA\.QUE:1: a query must begin with a number"),
            (
                "LISA.QUE",
                "1\nA #\n2\nCARDS\n",
                r"LISA\.QUE:3: the query that begins here does not end with '#'",
            ),
            ("LISARJ.NUM", "1 2 501\n", r"LISARJ\.NUM:1: 1 documents of query 1, not 2"),
            ("LISARJ.NUM", "1 1\nx\n", r"LISARJ\.NUM:2: judgements must be numbers, not 'x'"),
            ("LISARJ.NUM", "7 1 1\n", "no judgement refers to"),
        ],
    )
    def test_wrong_files(self, folder, put, name, content, reason):
        put(f"lisa/{name}", content)
        with pytest.raises(DatasetError, match=reason):
            load_retrieval_set(str(folder))

    @pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, it is the same file")
    def test_names_in_both_cases(self, folder, put):
        put("lisa/lisa.que", "1\nA #\n")
        with pytest.raises(DatasetError, match=r"LISA\.QUE and lisa\.que differ only in case"):
            load_retrieval_set(str(folder))

    def test_a_folder_without_judgements(self, folder):
        (folder / "LISARJ.NUM").unlink()
        with pytest.raises(DatasetError, match=r"neither corpus\.jsonl .* LISARJ\.NUM"):
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

    @pytest.mark.parametrize("name", retrieval_names())
    def test_a_file_named_like_a_published_set_is_another_set(self, put, monkeypatch, name):
        """Otherwise, published figures would be shown for it."""
        file = put(name, "query,passage,relevance\nhot,Tea,1\n")
        monkeypatch.chdir(file.parent)
        assert load_retrieval_set(f"./{name}").name == f"./{name}"

    def test_tsv(self, put):
        text = "label\tquestion\tdocument\n-1\thot?\tice\n"
        assert load_retrieval_set(str(put("hot.tsv", text))).qrels == {"q1": {"d1": 0}}

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "is empty"),
            (
                "a,b,c\nx,y,1\n",
                r"h\.csv:1: missing columns \(columns: a, b, c; expected: query",
            ),
            ("query,passage,relevance\n", "no judgement"),
            ("query,passage,relevance\nx,y\n", r"h\.csv:2: 2 columns; expected 3"),
            ("query,relevance,passage\nx,1,y, z\n", r"h\.csv:2: 4 columns; expected 3"),
            ("query,passage,relevance\nx,y,1\n ,y,1\n", r"h\.csv:3: the query is empty"),
            ("query,passage,relevance\nx,y,1\nx, ,0\n", r"h\.csv:3: the passage is empty"),
            ("query,passage,relevance\nx,y,good\n", r"h\.csv:2: the relevance is not an integer"),
        ],
    )
    def test_wrong_files(self, put, text, reason):
        with pytest.raises(DatasetError, match=reason):
            load_retrieval_set(str(put("h.csv", text)))
