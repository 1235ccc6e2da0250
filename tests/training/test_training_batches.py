"""Batches of texts of similar length; training only the embedding rows in use."""

from __future__ import annotations

import numpy
import pytest
import torch
from sentence_transformers import SentenceTransformer

from semsearch.training.batches import LikeLengthBatches, UsedRows, train_used_rows

LENGTHS = numpy.random.default_rng(0).integers(3, 60, 1000)


def batches(lengths=LENGTHS, size=16, seed=1, epoch=0, texts=()):
    sampler = LikeLengthBatches(lengths, texts, None, size, False, seed)
    sampler.set_epoch(epoch)
    found = list(sampler)
    assert len(found) == len(sampler)
    return found


def test_each_example_occurs_once():
    found = batches()
    assert sorted(row for batch in found for row in batch) == list(range(1000))
    assert sorted(map(len, found)) == [8] + 62 * [16]


def test_padding_is_small():
    """The longest of 16 random lengths from 3 to 59 (mean 31) is 54 on average."""
    padded = sum(len(batch) * LENGTHS[batch].max() for batch in batches())
    assert padded < 1.1 * LENGTHS.sum()


def test_order_depends_on_seed_and_epoch():
    assert batches() == batches()
    assert batches(seed=2) != batches()
    assert batches(epoch=1) != batches()
    # Not sorted by length: the learning rate falls from the first batch to the last.
    means = [LENGTHS[batch].mean() for batch in batches()]
    assert abs(numpy.corrcoef(means, range(len(means)))[0, 1]) < 0.3


@pytest.mark.parametrize("size", [4, 16])
def test_no_text_twice_in_a_batch(size):
    anchors = [f"a{row % 100}" for row in range(1000)]
    positives = [f"p{row}" for row in range(1000)]
    found = batches(size=size, texts=(anchors, positives))
    assert sorted(row for batch in found for row in batch) == list(range(1000))
    assert all(len({anchors[row] for row in batch}) == len(batch) for batch in found)


def test_used_rows_train_as_in_the_full_embedding():
    """As in torch's own embedding, without weight decay."""
    torch.manual_seed(0)
    whole = torch.nn.Embedding(8, 3)
    ids = torch.tensor([1, 6, 4, 1])
    rows = UsedRows(whole, [1, 4, 6])
    plain = torch.nn.Embedding(8, 3)
    plain.load_state_dict(whole.state_dict())
    for module in (rows, plain):
        optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0)
        for _ in range(5):
            optimizer.zero_grad()
            (module(ids) ** 2).sum().backward()
            optimizer.step()
    assert not torch.equal(plain.weight, whole.weight)
    torch.testing.assert_close(rows.state_dict()["weight"], plain.weight)


def test_a_model_keeps_its_vectors(tiny, tmp_path):
    model = SentenceTransformer(str(tiny), device="cpu")
    texts = ["the cat sleeps", "one river burns"]
    before = model.encode(texts)
    train_used_rows(model, set(model.tokenizer("the cat")["input_ids"]))
    assert isinstance(model.transformers_model.get_input_embeddings(), UsedRows)
    assert (model.encode(texts) == before).all()
    model.save(str(tmp_path))
    assert (SentenceTransformer(str(tmp_path), device="cpu").encode(texts) == before).all()
