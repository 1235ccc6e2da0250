"""Checks of the data before training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from semsearch.encoders.torch_loading import positions_of
from semsearch.errors import ArgumentError
from semsearch.texts import quantity
from semsearch.training.examples import Examples, Kind, Notify


def check_trainable(examples: Examples) -> None:
    """Check that a model can be trained on a set of examples.

    Raises:
        ArgumentError: there are no examples, only one class, only one gold score, or a single
            positive pair, which has no negatives.
    """
    name = examples.name
    if not len(examples):
        raise ArgumentError(f"{name} has no examples")
    if examples.kind is Kind.LABELLED and len(examples.labels) < 2:
        raise ArgumentError(f"{name} has only one class ('{examples.labels[0]}')")
    if examples.kind is Kind.SCORED and len(set(examples.targets)) < 2:
        raise ArgumentError(f"{name} has the same gold score everywhere")
    if examples.kind is Kind.POSITIVE and len(set(_pairs(examples))) < 2:
        raise ArgumentError(f"{name} has only one pair; in-batch negatives need others")


def without_leaks(
    training: Examples, held: Iterable[Examples], keep: bool, notify: Notify
) -> Examples:
    """The training set without the pairs, in either order, that are also in other sets.

    Texts that differ only in case and white space count as equal. The pair of a triplet is its
    anchor and its positive text.

    Args:
        training: the training set.
        held: the development and test sets.
        keep: keep the pairs, and only report them.
        notify: called with the number of pairs.

    Raises:
        ArgumentError: no pair is left.
    """
    leaking: set[int] = set()
    pairs = _pairs(training)
    for other in held:
        known = set(_pairs(other))
        found = {row for row, pair in enumerate(pairs) if pair in known}
        if found:
            done = "kept" if keep else "left out of training"
            notify(f"{training.name}: {quantity(len(found), 'pair')} also in {other.name}; {done}")
        leaking |= found
    if keep or not leaking:
        return training
    if len(leaking) == len(training):
        raise ArgumentError(f"{training.name} has only pairs that are in a development or test set")
    return training.take([row for row in range(len(training)) if row not in leaking])


def _pairs(examples: Examples) -> list[frozenset[str]]:
    left, right, *_ = examples.texts
    return [frozenset((text_key(a), text_key(b))) for a, b in zip(left, right, strict=True)]


def text_key(text: str) -> str:
    """A key that is the same for texts that differ only in case and white space."""
    return " ".join(text.casefold().split())


def limit_tokens(model: Any, config: Any, max_tokens: int | None) -> None:
    """Let a model read at most this many tokens per text; None leaves its own limit.

    Raises:
        ArgumentError: it has fewer positions, or is no transformer.
    """
    if max_tokens is None:
        return
    if config is None:
        raise ArgumentError(
            "--max-tokens does not support this model, which is no transformer; leave it out"
        )
    positions = positions_of(config)
    if positions is not None and max_tokens > positions:
        raise ArgumentError(
            f"the model reads {positions} tokens, not {max_tokens}; lower --max-tokens"
        )
    model.max_seq_length = max_tokens
