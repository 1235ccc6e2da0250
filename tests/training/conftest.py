"""A tiny model and data of our own making: what one learns within a few steps."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

THINGS = ["cat", "dog", "bird", "train", "boat", "apple", "stone", "river"]
DEEDS = ["runs", "sleeps", "falls", "waits", "burns", "grows"]
WORDS = ["the", "one", "now", *THINGS, *DEEDS]


@pytest.fixture(scope="session")
def tiny(write_bert) -> Path:
    """A folder with a BERT of two narrow layers and random weights."""
    return write_bert(WORDS)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    """A folder with a file of each kind of examples, 64 in each."""
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
        # A random model finds texts alike that share words; here they score low.
        "opposite.csv": ["left,right,score", *(f"{a},{b},{5 - s}" for a, b, s in rows)],
        # What a word of the second text tells, which a small cross-encoder learns in no time.
        "rated.csv": ["left,right,score", *(f"{a},{b},{n / 8}" for a, b, n in seen)],
        "sorted.tsv": ["left\tright\tlabel", *(f"{a}\t{b}\tkind {n % 3}" for a, b, n in seen)],
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
