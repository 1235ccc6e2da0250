"""The columns that are taken as text and id without a usual name."""

from __future__ import annotations

import csv
import random

import pytest

from semsearch.corpus import Corpus
from semsearch.errors import BadRowError, ColumnNotFoundError

WORDS = ("screen", "after", "update", "the", "nobody", "support", "went", "dark")


def sentence(number, words):
    chance = random.Random(number)
    return " ".join(chance.choice(WORDS) for _ in range(words)) + f" {number}."


def read(folder, columns, rows=40, **options):
    """The documents of a table whose columns are functions of the row, and the messages."""
    file = folder / "table.csv"
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows([make(row) for make in columns.values()] for row in range(rows))
    notes = []
    return list(Corpus(file, notify=notes.append, **options)), notes


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
    answers = {"Why?": lambda row: sentence(row, 20) if row % 3 == 0 else ""}
    with pytest.raises(BadRowError, match=r"table\.csv:3"):  # the column was taken
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


def ids(folder, name, values):
    columns = {name: values.__getitem__, "text": lambda row: values[row] and f"text {values[row]}"}
    documents, _ = read(folder, columns, len(values), on_bad_row=lambda error: None)
    return [document.id for document in documents]


@pytest.mark.parametrize(
    "name", ["Resp. no.", "Ticket #", "KEY", "Nr.", "ticketId", "ticket-id", "Vorgangsnummer"]
)
def test_a_column_named_like_an_id(tmp_path, name):
    assert ids(tmp_path, name, ["7", "9", ""]) == ["7", "9"]  # a total has no text


@pytest.mark.parametrize("name", ["year", "note", "number", "idea", "piano"])
def test_columns_with_other_names_are_no_ids(tmp_path, name):
    assert ids(tmp_path, name, ["7", "9"]) == [None, None]


def test_repeated_and_missing_values_are_no_ids(tmp_path):
    """Even far below; nor are those of several files."""
    values = [str(number) for number in range(1, 3001)]
    assert ids(tmp_path, "Nr.", values) == values
    assert "1" not in ids(tmp_path, "Nr.", [*values, "1"])
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    paths[0].write_text("Nr.,text\n1,one\n,two\n")
    paths[1].write_text("Nr.,text\n2,one\n3,two\n")
    assert {document.id for document in Corpus(paths[0])} == {None}
    assert {document.id for document in Corpus(paths)} == {None}
