"""Losses computed in one forward pass equal those of sentence-transformers."""

from __future__ import annotations

from unittest.mock import patch

import pytest
import torch
from sentence_transformers import SentenceTransformer

from semsearch.training import Loss
from semsearch.training.encoder import disable_dropout
from semsearch.training.examples import Examples, Kind
from semsearch.training.trainer import embed_together, embedding_loss

LEFT = ["the cat runs", "the dog sleeps now", "a boat"]
RIGHT = ["the bird falls", "the train waits", "an apple grows now"]


@pytest.fixture
def model(tiny):
    model = SentenceTransformer(str(tiny), device="cpu")
    disable_dropout(model)
    return model


SCORED = Examples("pairs", Kind.SCORED, (LEFT, RIGHT), [0.2, 0.5, 0.9])


def test_large_batches_are_embedded_in_parts(model):
    """Gradient caching changes memory, not the loss (Gao et al. 2021)."""
    for size, is_cached in ((128, False), (129, True)):
        loss = embedding_loss(model, Loss.RANKING, SCORED, size)
        assert hasattr(loss, "mini_batch_size") == is_cached


@pytest.mark.parametrize("kind", [Loss.COSINE, Loss.COSENT, Loss.RANKING])
def test_one_pass_gives_the_same_loss_and_gradients(model, kind):
    found = []
    for together in (False, True):
        loss = embedding_loss(model, kind, SCORED, 16)
        if together:
            embed_together(loss)
        model.zero_grad()
        features = [model.preprocess(texts) for texts in (LEFT, RIGHT)]
        with patch.object(model[0], "forward", wraps=model[0].forward) as forward:
            value = loss(features, torch.tensor(SCORED.targets))
        value.backward()
        assert forward.call_count == (1 if together else 2)
        weights = model.transformers_model.get_input_embeddings().weight
        found.append((value.detach(), weights.grad.clone()))
    (apart, its_gradient), (one, gradient) = found
    torch.testing.assert_close(one, apart)
    torch.testing.assert_close(gradient, its_gradient, rtol=1e-4, atol=1e-4)
