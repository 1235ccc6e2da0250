"""Headers, found or missing; columns by position; the roles of columns by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from semsearch.corpus import Row, good_rows, open_table
from semsearch.corpus.roles import find_pair, has_header, is_prose
from semsearch.corpus.table import look_ahead
from semsearch.errors import BadRowError, CorpusError
from semsearch.records import Document
from tests.corpus.conftest import read

NEWS = [
    ("3", "Oil prices climb again", "Reuters - Crude rose for a third day, traders said."),
    ("4", "A phone that folds twice", "The maker showed a device with two hinges."),
    ("3", "Bank raises its forecast", "Growth may reach two percent, the bank says."),
    ("1", "Talks resume in the capital", "Both sides returned to the table on Monday."),
] * 3
STS = [
    ("A plane takes off.", "An aeroplane is taking off.", "5.0"),
    ("A man plays a flute.", "A man is eating.", "0.8"),
    ("Two dogs run through the snow.", "Two dogs play in the snow.", "3.6"),
]
MIND = [
    ("N55528", "lifestyle", "royals", "The brands that a queen swears by", "https://x.org/a"),
    ("N19639", "health", "weight", "Fifty habits that ruin a good night", "https://x.org/b"),
    ("N61837", "lifestyle", "news", "The cost of trenches in a long war", "https://x.org/c"),
]
SPAM = [("ham", "Are you there?"), ("spam", "Win a prize now!"), ("ham", "See you at eight.")]
HEADLINES = [("Oil prices climb for a third day",), ("Bank raises its forecast again",)]
IRIS = [("5.1", "3.5", "setosa"), ("4.9", "3.0", "setosa"), ("6.4", "3.2", "versicolor")]
LAYOUTS = [NEWS, STS, MIND, SPAM, HEADLINES, IRIS]
HEADERS = {
    3: ["Class Index", "Title of it", "Description of it"],
    5: ["Nr", "Section", "Part", "What", "Where"],
    2: ["Kind of message", "Words"],
    1: ["Top story"],
}


class TestDetection:
    @pytest.mark.parametrize("rows", LAYOUTS)
    def test_published_layouts(self, rows):
        assert not has_header(rows)
        assert has_header([HEADERS[len(rows[0])], *rows])

    def test_questions_beside_a_column_of_dates(self):
        header = ["Answer", "What did you like about the course?", "What could be improved?"]
        answers = ["The teacher was great and funny.", "Nothing at all I think."]
        dates = ("2024/01/05 10:30:00 am GMT+1", "2024/01/06 9:31:00 pm GMT+1")  # Google Forms
        assert has_header([header, *([date, *answers] for date in dates)])

    def test_usual_names_and_repeated_headers(self):
        assert has_header([["Review"], ["It was good."], ["It was not."]])
        assert not has_header([["review", "It was good."], ["review", "It was not good."]])
        assert has_header([["kind", "weight"], ["pear", "12"], ["kind", "weight"], ["plum", "3"]])
        assert has_header([["1", "It is."], ["2", "No."]], ["It is."])  # named by the user
        assert not has_header([["1", "It is."], ["2", "No."]], ["1"])


def test_prose():
    """At least four words, or two that end like a sentence; 8 signs without spaces."""
    assert all(map(is_prose, ["one two three four", "Two words.", "今天的天气很好啊"]))
    others = ["one two three", "Two words", "Word.", "今天的天气很好"]
    assert not any(map(is_prose, others))


@pytest.mark.parametrize(
    ("columns", "pair"),
    [
        (["id", "Sentence_1", "sentence 2", "score"], ("Sentence_1", "sentence 2")),
        (["answer", "question"], ("question", "answer")),
        (["anchor", "text2", "positive"], ("anchor", "positive")),
        (["left", "answer"], ("left", "answer")),
        (["left", "id"], None),
    ],
)
def test_columns_of_pairs(columns, pair):
    assert find_pair(columns) == pair


@pytest.mark.parametrize("bad", [b"c\xe9,z", b"x,y,z"])
def test_rows_of_which_all_are_needed(write, bad):
    write("pairs.txt", b"left,right\na,\xc3\xa9\n" + bad + b"\n")
    with open_table(Path("pairs.txt")) as table:
        rows = good_rows(table)
        assert next(rows).fields == {"left": "a", "right": "é"}
        with pytest.raises(BadRowError, match=r"^pairs\.txt:3: "):
            next(rows)


def test_what_is_looked_at():
    """1,000 rows, or those that have 4 Mi characters in cells that are not numbers."""
    assert len(look_ahead(iter(range(2000)))) == 1000
    rows = [Row("", {"n": 1, "text": "x" * (1 << 20), "tags": ["a"] * (1 << 20)})] * 9
    assert len(look_ahead(iter(rows))) == 2


def read_rows(write, rows, **options):
    content = "\n".join(",".join(f'"{cell}"' for cell in cells) for cells in rows)
    documents, _, notices = read(write("train.csv", content), **options)
    return documents, notices


def test_missing_header_is_reported(write):
    documents, lines = read_rows(write, NEWS, text_columns="3")
    assert len(documents) == 12
    metadata = {"column 1": 3, "column 2": NEWS[0][1]}
    assert documents[0] == Document(None, NEWS[0][2], None, metadata)
    assert documents[0].source == "train.csv:1"
    assert "no header: " in lines[0]


def test_header_can_be_disabled(write):
    rows = [("id", "text"), ("a", "b")]
    documents, lines = read_rows(write, rows, header=False, text_columns="2", id_column="1")
    assert [(document.id, document.text) for document in documents] == rows
    assert lines[0].endswith("no header")
    assert len(read_rows(write, [HEADERS[1]], header=False)[0]) == 1


def test_columns_by_position_unless_one_has_that_name(write):
    rows = [("nr", "what"), ("1", "Rain fell on the town."), ("2", "It snowed.")]
    documents, _ = read_rows(write, rows, text_columns="2", id_column="1")
    assert [(document.id, document.text) for document in documents] == rows[1:]
    rows = [("text", "3", "2"), ("one", "two", "three")]
    assert read_rows(write, rows, text_columns="2")[0][0].text == "three"


def test_invalid_positions(write):
    for position in ("0", "4", "-1", "1.0", "²", "9" * 5000):
        with pytest.raises(CorpusError):
            read_rows(write, NEWS, text_columns=position)
