"""The columns that are taken as the text without a usual name."""

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
