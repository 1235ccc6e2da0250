"""Warnings about encoders: words without a vector, and languages that they read poorly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from semsearch.cli.render import note
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import parse_spec
from semsearch.encoders.vocabulary_fit import SAMPLE_TEXTS, Fit, tokenizer_of, vocabulary_fit
from semsearch.errors import quoted
from semsearch.protocols import Encoder, KnowsWords

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.storage.spaces import Space


def sampled_texts(index: Index, passages: int) -> list[str]:
    """Passages spread over an index; texts of the first documents if most of these were deleted."""
    spread = numpy.linspace(1, passages, min(passages, SAMPLE_TEXTS), dtype=numpy.int64)
    with index.read() as state:
        found = state.fetch(spread.tolist()) if passages else {}
        texts = [passage.passage.text for passage in found.values()]
        if len(texts) < len(spread) / 2:
            texts = [one.text for one in next(state.scan(SAMPLE_TEXTS), [])]
    return texts


def fit_of(space: Space, texts: Sequence[str]) -> Fit | None:
    """How well the encoder of a space suits texts; None if it has no word pieces."""
    tokenizer = tokenizer_of(space.spec)
    return None if tokenizer is None else vocabulary_fit(tokenizer, texts)


def poor_fit(space: Space, fit: Fit | None) -> str | None:
    """A warning if an encoder does not read the language of texts well; otherwise None."""
    if fit is None or not fit.is_poor:
        return None
    why = f"{fit.pieces_per_word:.1f} pieces per word"
    if math.isnan(fit.pieces_per_word) or fit.pieces_per_word < 1.5:
        why = "unknown characters"
    spec = str(parse_spec(space.spec)._replace(dimension=None))  # a teacher has all its dimensions
    teacher = "" if spec == DEFAULT_ENCODER else f" --base {quoted(spec)}"
    return (
        f"{space.name} does not read the language of {fit.poor} of {fit.texts} sampled passages "
        f"well ({why}); teach it: semsearch train translate{teacher} --parallel FILE --output DIR"
    )


def warn_of_poor_fit(space: Space, texts: Sequence[str]) -> None:
    """Warn on standard error if the encoder of a space does not read the language of texts."""
    if texts and (warning := poor_fit(space, fit_of(space, texts))):
        note(warning)


def warn_of_unknown_words(name: str, encoder: Encoder) -> None:
    """Report on standard error how many words had no vector, if the encoder counts them."""
    if not isinstance(encoder, KnowsWords):
        return
    coverage = encoder.coverage()
    if coverage.unknown:
        share = f"{coverage.unknown / coverage.words:.1%} of {coverage.words:,} words"
        most = ", ".join(coverage.most_frequent_unknown)
        note(f"{name}: {share} have no vector; most often: {most}")
