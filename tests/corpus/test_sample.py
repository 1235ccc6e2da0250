"""The sample corpus in its two languages: the same notes, with the same ids."""

from __future__ import annotations

import csv
import json
from importlib.resources import files

import pytest

from semsearch.cli.index_command import SAMPLES


@pytest.fixture(scope="module")
def notes():
    folder = files("semsearch.corpus") / "sample"
    return {
        language: list(csv.DictReader((folder / file).read_text("utf-8").splitlines()))
        for language, file in SAMPLES.items()
    }


def test_both_have_the_same_notes(notes):
    assert len(notes["en"]) == len(notes["pt"]) == 320
    for english, portuguese in zip(notes["en"], notes["pt"], strict=True):
        for column in ("id", "year", "beginner"):
            assert english[column] == portuguese[column]
        assert len(json.loads(english["tags"])) == len(json.loads(portuguese["tags"]))
        assert portuguese["text"] != english["text"]
    topics = {(one["topic"], other["topic"]) for one, other in zip(*notes.values(), strict=True)}
    assert len(topics) == 16


def test_notes_are_distinct(notes):
    for rows in notes.values():
        assert len({row["text"] for row in rows}) == len({row["title"] for row in rows}) == 320
