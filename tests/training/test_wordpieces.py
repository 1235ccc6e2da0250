"""A learnt vocabulary splits words as BERT's does, and is reproducible."""

from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from semsearch.errors import TrainingError
from semsearch.training.wordpieces import learn_word_pieces, save_tokenizer

TEXTS = ["The baker baked bread.", "A baker bakes; the bakers' bread is baked.", "Bäckerei"] * 3


def test_words_are_split():
    tokenizer = learn_word_pieces(lambda: TEXTS, 60, 32)
    assert tokenizer.tokenize("The bakers") == ["the", "bakers"]
    assert tokenizer.tokenize("bakerei")[0].startswith("baker")
    assert tokenizer.tokenize("BÄCKEREI") == tokenizer.tokenize("backerei")
    assert tokenizer.tokenize("żółw") == ["[UNK]"]
    cased = learn_word_pieces(lambda: TEXTS, 80, 32, cased=True)
    assert "".join(cased.tokenize("Bäckerei")).replace("##", "") == "Bäckerei"


def test_round_trip(tmp_path):
    tokenizer = learn_word_pieces(lambda: TEXTS, 60, 32)
    save_tokenizer(tokenizer, tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.get_vocab() == tokenizer.get_vocab()
    assert again.model_max_length == 32
    text = "The baker baked"
    assert again(text).input_ids == tokenizer(text).input_ids
    assert again(text).input_ids[0] == 2
    lines = (tmp_path / "vocab.txt").read_text("utf-8").splitlines()
    assert {piece: number for number, piece in enumerate(lines)} == tokenizer.get_vocab()


def test_vocabulary_too_small_for_the_characters():
    with pytest.raises(TrainingError):
        learn_word_pieces(lambda: TEXTS, 20, 32)
