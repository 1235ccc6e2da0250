"""Contrastive training on a corpus: its pairs, what is held out, what the encoder learns."""

from __future__ import annotations

import random

from semsearch import Document
from semsearch.training import Contrast, Recipe, Settings
from tests.training.conftest import DEEDS, THINGS

TOGETHER = dict(zip(THINGS, [*DEEDS, "one", "now"], strict=True))


def documents(count=160):
    """Each title names a thing; its sentence has another word that always goes with it."""
    pick = random.Random(0)
    things = [pick.choice(THINGS) for _ in range(count)]
    return [
        Document(str(n), f"the {TOGETHER[thing]} {n}.", title=f"{thing} {n}")
        for n, thing in enumerate(things)
    ]


def stages(corpus, tmp_path, recipe=None, **settings):
    wanted = Settings(
        "base", tmp_path / "out", ["c"], [recipe or Recipe(seed=1, epochs=1)], **settings
    )
    (stage,) = Contrast(corpus, "c").prepare(wanted, lambda message: None).stages
    return stage


def test_pairs_are_titles_and_adjacent_sentences(tmp_path):
    text = "The owl flies. It is night. It is night. Nobody sees it."
    corpus = [
        Document(str(n), text.replace("owl", f"owl {n}"), title=f"Owl {n}") for n in range(40)
    ]
    corpus.append(Document("alone", "One sentence without a title."))
    stage = stages(corpus, tmp_path)
    found = set(zip(*stage.training.texts, strict=True))
    owls = {int(left[4:]) for left, _ in found if left.startswith("Owl ")}
    assert len(owls) == 36  # four are held out, the minimum
    assert found == {
        pair
        for n in owls
        for pair in [(f"Owl {n}", f"The owl {n} flies."), (f"The owl {n} flies.", "It is night.")]
    }, "no text is paired with itself, and pairs of held-out documents are left out"
    held = set(zip(*stage.development.texts, strict=True))
    assert ("It is night.", "Nobody sees it.") in held
    assert not found & held


def test_default_learning_rate_depends_on_the_base(write_bert):
    """1e-3 up to 256 dimensions, 5e-4 up to 512; 2e-5 for wide BERTs and sentence encoders."""

    def rate(base):
        return Contrast([], "c").recipe_for(str(base)).learning_rate

    narrow = write_bert(["a"], hidden_size=256)
    middle = write_bert(["a"], hidden_size=512)
    wide = write_bert(["a"], hidden_size=768)
    assert [rate(base) for base in (narrow, middle, wide, "minilm")] == [1e-3, 5e-4, 2e-5, 2e-5]
