"""A tiny reranker learns to rank what the first-stage search cannot distinguish."""

from __future__ import annotations

import json
import shutil

import pytest

from semsearch import Document, Index
from semsearch.encoders import load_reranker
from semsearch.encoders.model_folder import transformer_folder
from semsearch.evaluation.datasets import RetrievalSet
from semsearch.training import Recipe, Reranking, Settings, train
from semsearch.training.reranker import load_cross_encoder
from tests.training.conftest import DEEDS, THINGS

STARTS = ["the", "one", "now", "the one"]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """Deeds of each thing. The encoder compares words: it finds a query's thing, not the deed."""
    with Index.create(tmp_path_factory.mktemp("indexes") / "things", "hashing") as index:
        index.add(
            Document(f"{thing}'s {deed}", f"one {thing} {deed}")
            for thing in THINGS
            for deed in DEEDS
        )
        yield index


@pytest.fixture(scope="module")
def judged():
    """Of each thing's deeds, only sleeping is relevant."""
    queries = {f"{start} {thing}": f"{start} {thing}" for start in STARTS for thing in THINGS}
    qrels = {query: {f"{query.split()[-1]}'s sleeps": 1} for query in queries}
    return RetrievalSet("things", {}, queries, qrels)


def settings(tiny, folder):
    recipe = Recipe(epochs=16, learning_rate=3e-3, head_learning_rate=3e-3)
    return Settings(str(tiny), folder, ["things"], [recipe])


@pytest.mark.nightly
def test_both_stages_improve_on_the_first(tiny, index, judged, tmp_path):
    messages = []
    task = Reranking(index, judged)
    trained = train(task, settings(tiny, tmp_path / "m"), messages.append)
    assert (
        "26 queries to train on, with 26 relevant passages and 104 negatives from their top 50; "
        "6 queries held out" in messages
    )
    # The reranker cannot know the thing of an unseen query, nor the first-stage search the deed.
    (test,) = trained.tests
    assert test.before < 80
    assert test.score > 95
    assert "reranking helps" in trained.verdict
    folder = tmp_path / "m"
    assert 0 < json.loads((folder / "config.json").read_text())["first_stage_weight"] < 1
    for options in ({}, {"device": "cpu"}):  # OpenVINO and torch
        reranker = load_reranker(folder, **options)
        for thing in THINGS:
            first = index.search(f"now {thing}", 3, rerank=reranker)[0]
            assert first.document_id == f"{thing}'s sleeps"
            assert first.scores.reranked != first.score


def test_negatives_are_near_and_not_relevant(tiny, index, judged, tmp_path):
    task = Reranking(index, judged, negatives=3)
    (stage,) = task.prepare(settings(tiny, tmp_path), lambda message: None).stages
    rows = list(zip(*stage.training.texts, stage.training.targets, strict=True))
    for query, passage, target in rows:
        assert target == (passage == f"one {query.split()[-1]} sleeps")
    for query in {query for query, _, _ in rows}:
        passages = [passage for asked, passage, _ in rows if asked == query]
        assert len(passages) == len(set(passages)) == 4


def test_attention_is_not_chosen_by_the_files_of_a_model(tiny, tmp_path):
    """Of a name with a slash, transformers would run code from the hub."""
    shutil.copytree(tiny, tmp_path / "model")
    config = transformer_folder(tmp_path / "model") / "config.json"
    named = {"attn_implementation": "evil/kernel"}
    config.write_text(json.dumps(json.loads(config.read_text()) | named))
    assert load_cross_encoder(tmp_path / "model").num_labels == 1
