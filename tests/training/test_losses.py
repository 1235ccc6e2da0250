"""Losses computed in one forward pass equal those of sentence-transformers."""

from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense

from semsearch.training import Loss, Recipe
from semsearch.training.examples import Examples, Kind
from semsearch.training.losses import TeacherLoss, embed_together, embedding_loss
from semsearch.training.translate import disable_dropout

LEFT = ["the cat runs", "the dog sleeps now", "a boat"]
RIGHT = ["the bird falls", "the train waits", "an apple grows now"]


@pytest.fixture
def model(tiny):
    model = SentenceTransformer(str(tiny), device="cpu")
    disable_dropout(model)
    return model


def scored(left, right):
    return Examples("pairs", Kind.SCORED, (left, right), [0.2, 0.5, 0.9])


def passes(model, loss, features, labels):
    """The number of forward passes for a loss, and its value."""
    count = 0

    def note(*_):
        nonlocal count
        count += 1

    handle = model[0].register_forward_hook(note)
    value = loss(features, labels)
    handle.remove()
    return count, value


@pytest.mark.parametrize("kind", [Loss.COSINE, "teacher"])
def test_dimensions_that_a_model_cuts_off_are_not_trained(model, kind):
    """A Dense layer's rows are the dimensions; the model's `encode` keeps the first 4 of 8."""
    dense = Dense(model.get_embedding_dimension(), 8, activation_function=torch.nn.Identity())
    cut = SentenceTransformer(modules=[*model, dense], truncate_dim=4, device="cpu")
    if kind == "teacher":
        loss, labels = TeacherLoss(cut, cut.encode(RIGHT)), torch.tensor([0, 1, 2])
        features = [cut.preprocess(LEFT)]
    else:
        loss, labels = embedding_loss(cut, kind, scored(LEFT, RIGHT), Recipe()), torch.rand(3)
        features = [cut.preprocess(texts) for texts in (LEFT, RIGHT)]
    loss(features, labels).backward()
    assert dense.linear.weight.grad.abs().sum(axis=1).gt(0).tolist() == [True] * 4 + [False] * 4


def test_large_batches_are_embedded_in_parts(model):
    """Gradient caching changes memory, not the loss (Gao et al. 2021)."""
    for size, is_cached in ((128, False), (129, True)):
        loss = embedding_loss(model, Loss.RANKING, scored(LEFT, RIGHT), Recipe(batch_size=size))
        assert hasattr(loss, "mini_batch_size") == is_cached


@pytest.mark.parametrize("kind", [Loss.COSINE, Loss.COSENT, Loss.RANKING])
@pytest.mark.parametrize("dimensions", [(), (16, 8)])
def test_one_pass_gives_the_same_loss_and_gradients(model, kind, dimensions):
    recipe = Recipe(dimensions=dimensions)
    found = []
    for together in (False, True):
        loss = embedding_loss(model, kind, scored(LEFT, RIGHT), recipe)
        if together:
            embed_together(loss)
        model.zero_grad()
        features = [model.preprocess(texts) for texts in (LEFT, RIGHT)]
        labels = torch.tensor([0.2, 0.5, 0.9])
        count, value = passes(model, loss, features, labels)
        value.backward()
        assert count == (1 if together else 2)
        weights = model.transformers_model.get_input_embeddings().weight
        found.append((value.detach(), weights.grad.clone()))
    (apart, its_gradient), (one, gradient) = found
    torch.testing.assert_close(one, apart)
    torch.testing.assert_close(gradient, its_gradient, rtol=1e-4, atol=1e-4)
