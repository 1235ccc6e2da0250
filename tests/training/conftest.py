"""Tiny models, and synthetic data that they learn within a few steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy
import pytest

from semsearch import Document

THINGS = ["cat", "dog", "bird", "train", "boat", "apple", "stone", "river"]
DEEDS = ["runs", "sleeps", "falls", "waits", "burns", "grows"]
WORDS = ["the", "one", "now", *THINGS, *DEEDS]


@pytest.fixture(scope="session")
def tiny(write_bert) -> Path:
    """The folder of a BERT with two narrow layers and random weights."""
    return write_bert(WORDS)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """A folder with one file per kind of training example, 64 examples each."""
    folder = tmp_path_factory.mktemp("files")
    pick = random.Random(0)
    rows, seen = [], []
    for _ in range(64):
        thing, deed = pick.choice(THINGS), pick.choice(DEEDS)
        other = thing if pick.random() < 0.5 else pick.choice(THINGS)
        done = deed if pick.random() < 0.5 else pick.choice(DEEDS)
        score = 2.5 * ((thing == other) + (deed == done))
        rows.append((f"the {thing} {deed}", f"one {other} {done}", score))
        seen.append((f"the {thing} {deed}", f"one {other} {done}", THINGS.index(other)))
    names = {0.0: "other", 2.5: "half", 5.0: "same"}
    write = {
        "scored.csv": ["sentence1,sentence2,score", *(f"{a},{b},{s}" for a, b, s in rows)],
        "labelled.tsv": [
            "sentence1\tsentence2\tgold_label",
            *(f"{a}\t{b}\t{names[s]}" for a, b, s in rows),
        ],
        # A random model scores texts that share words high; the scores here are the reverse.
        "opposite.csv": ["left,right,score", *(f"{a},{b},{5 - s}" for a, b, s in rows)],
        # One word of the second text decides: easy to learn for a small cross-encoder.
        "rated.csv": ["left,right,score", *(f"{a},{b},{n / 8}" for a, b, n in seen)],
        "binary.csv": ["left,right,label", *(f"{a},{b},{n % 2}" for a, b, n in seen)],
        "pairs.csv": ["anchor,positive", *(f"{a},{a.replace('the', 'one')} now" for a, *_ in rows)],
        "triplets.jsonl": [
            json.dumps({"anchor": a, "positive": a.replace("the", "one"), "negative": b})
            for a, b, _ in rows
        ],
    }
    for name, lines in write.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


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
def tiny_encoder(documents, tmp_path_factory):
    """The folder of a sentence encoder with random weights and the documents' vocabulary."""
    return random_encoder(documents, tmp_path_factory, 0.02)


@pytest.fixture(scope="session")
def tiny_teacher(documents, tmp_path_factory):
    """The same with larger weights, so that each layer has an effect."""
    return random_encoder(documents, tmp_path_factory, 0.3)


def random_encoder(documents, tmp_path_factory, initializer_range):
    import torch
    from sentence_transformers import SentenceTransformer
    from transformers import BertConfig, BertModel

    from semsearch.training.pretrain import learn_word_pieces

    torch.manual_seed(0)
    tokenizer = learn_word_pieces([one.text for one in documents], 200, 64)
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
    tokenizer.save_pretrained(plain)
    SentenceTransformer(str(plain), device="cpu").save(str(folder))
    return folder
