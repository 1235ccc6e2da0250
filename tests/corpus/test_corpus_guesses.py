"""The columns that are taken as text and id without a usual name."""

from __future__ import annotations

import csv
import random

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import ColumnNotFoundError

WORDS = ("screen", "after", "update", "the", "nobody", "support", "went", "dark")


def sentence(number, words):
    chance = random.Random(number)
    return " ".join(chance.choice(WORDS) for _ in range(words)) + f" {number}."


def read(tmp_path, columns):
    """The documents of a table of 40 rows, whose columns are functions of the row."""
    file = tmp_path / "table.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([make(row) for make in columns.values()] for row in range(40))
    notes = []
    return list(Corpus(file, notify=notes.append)), notes


OTHERS = {
    "Country": lambda row: ("Peru", "Chad")[row % 2],
    "Site": lambda row: f"https://shop.example/a/long/path/to/some/article/with/a/name/{row}",
    "Reply of the shop": lambda row: "We are sorry to hear that.",
    "Cart": lambda row: (
        f'{{"item": {row}, "colour": "a dark shade of blue", "size": "quite large"}}'
    ),
}


def test_by_far_the_longest_texts(tmp_path):
    documents, [note] = read(tmp_path, {**OTHERS, "Why?": lambda row: sentence(row, 20)})
    assert documents[3].text == sentence(3, 20)
    assert set(documents[3].metadata) == set(OTHERS)
    assert "text from 'Why?'" in note


def test_some_rows_have_no_text(tmp_path):
    answers = {"Why?": lambda row: sentence(row, 20) if row % 3 == 0 else ""}
    with pytest.raises(Exception, match=r"table\.csv:3"):  # a bad row: the column was taken
        read(tmp_path, {**OTHERS, **answers})


@pytest.mark.parametrize(
    "columns",
    [
        {"Likes": lambda row: sentence(row, 20), "Dislikes": lambda row: sentence(row, 15)},
        {"Kind": lambda row: "one of three long texts that are repeated " * (1 + row % 3)},
        {},
    ],
)
def test_none_is_clearly_the_text(tmp_path, columns):
    with pytest.raises(ColumnNotFoundError):
        read(tmp_path, {**OTHERS, **columns})


class TestIds:
    @pytest.fixture
    def read(self, tmp_path):
        """The ids and messages of tables with texts and one more column."""

        def read(name, values, files=1):
            paths = [tmp_path / f"{number}.csv" for number in range(files)]
            for path in paths:
                with path.open("w", encoding="utf-8", newline="") as stream:
                    writer = csv.writer(stream)
                    writer.writerow([name, "text"])
                    writer.writerows((value, value and f"text {value}") for value in values)
            notes = []
            corpus = Corpus(paths, notify=notes.append, on_bad_row=lambda error: None)
            return [document.id for document in corpus], notes

        return read

    @pytest.mark.parametrize(
        "name",
        ["Resp. no.", "Ticket #", "KEY", "Nr.", "ticketId", "ticket-id", "Vorgangsnummer", "No"],
    )
    def test_a_column_named_like_an_id(self, read, name):
        ids, [note] = read(name, ["7", "9", ""])  # a total has no text
        assert ids == ["7", "9"]
        assert f"id from '{name}'" in note

    @pytest.mark.parametrize("name", ["year", "note", "number", "idea", "piano"])
    def test_other_names(self, read, name):
        assert "7" not in read(name, ["7", "9"])[0]

    def test_a_repeated_value_far_below(self, read):
        values = [str(number) for number in range(1, 3001)]
        assert read("Nr.", values)[0] == values
        assert "1" not in read("Nr.", [*values, "1"])[0]

    def test_a_missing_value(self, tmp_path):
        (tmp_path / "a.csv").write_text("Nr.,text\n1,one\n,two\n")
        assert "1" not in {document.id for document in Corpus(tmp_path / "a.csv")}

    def test_numbers_of_several_files(self, read):
        ids, _ = read("Nr.", ["1", "2"], files=2)
        assert "1" not in ids
