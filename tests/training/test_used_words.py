"""Training only the embedding rows in use changes nothing else."""

from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer

from semsearch.training.used_words import UsedRows, train_used_rows

USED = [1, 4, 6]


@pytest.fixture
def whole():
    torch.manual_seed(0)
    return torch.nn.Embedding(8, 3)


def test_used_rows_train_as_in_the_full_embedding(whole):
    """As in torch's own embedding, without weight decay."""
    ids = torch.tensor([1, 6, 4, 1])
    rows = UsedRows(whole, USED)
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
