"""Made-up documents in which words follow each other by rule, so that a tiny model can learn."""

from __future__ import annotations

import json

import numpy
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from semsearch import Document
from semsearch.unsupervised.wordpieces import learn_word_pieces, save_tokenizer

TOPICS = {
    "sea": "wave salt harbour sailor tide gull anchor storm deck rope",
    "bread": "flour oven dough baker crust yeast salt dawn shop loaf",
    "stars": "comet orbit night telescope planet moon dust light sky dome",
    "music": "violin stage drum melody singer choir string hall chord note",
}


@pytest.fixture(scope="session")
def documents():
    """120 documents of 4 to 7 sentences, each about one of four topics."""
    generator = numpy.random.default_rng(0)
    made = []
    for number in range(120):
        topic = list(TOPICS)[number % len(TOPICS)]
        words = TOPICS[topic].split()
        sentences = [
            f"The {' '.join(generator.permutation(words)[:5])} of number {number}."
            for _ in range(generator.integers(4, 8))
        ]
        made.append(Document(str(number), " ".join(sentences), title=f"{topic} {number}"))
    return made


@pytest.fixture(scope="session")
def corpus_file(documents, tmp_path_factory):
    """The same documents as a file."""
    file = tmp_path_factory.mktemp("corpus") / "topics.jsonl"
    rows = [{"id": one.id, "title": one.title, "text": one.text} for one in documents]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


@pytest.fixture(scope="session")
def tiny_encoder(documents, tmp_path_factory):
    """A folder with a sentence encoder of random weights that knows the documents' words."""
    return made_encoder(documents, tmp_path_factory, 0.02)


@pytest.fixture(scope="session")
def tiny_teacher(documents, tmp_path_factory):
    """The same with larger weights, so that each of its layers does something."""
    return made_encoder(documents, tmp_path_factory, 0.3)


def made_encoder(documents, tmp_path_factory, initializer_range):
    torch.manual_seed(0)
    tokenizer = learn_word_pieces(lambda: [one.text for one in documents], 200, 64)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=initializer_range,
    )
    plain, folder = (tmp_path_factory.mktemp(name) for name in ("plain", "encoder"))
    BertModel(config).save_pretrained(plain)
    save_tokenizer(tokenizer, plain)
    SentenceTransformer(str(plain), device="cpu").save(str(folder))
    return folder
