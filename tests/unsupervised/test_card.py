"""The card of a model."""

from __future__ import annotations

from semsearch.unsupervised.card import model_card


def test_a_card_is_a_table():
    card = model_card("my | model", "It was made.", {"seed": 0, "note": "two\nlines | bar"})
    assert "# my \\| model\n\nIt was made.\n" in card
    assert "| note | two lines \\| bar |" in card
