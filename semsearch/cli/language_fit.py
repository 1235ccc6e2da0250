"""Warnings about encoders: words without a vector, and languages that they read poorly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsearch.cli.render import note
from semsearch.encoders.vocabulary_fit import SAMPLE_TEXTS, tokenizer_of, vocabulary_fit
from semsearch.protocols import CountsWords, Encoder

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.storage.spaces import Space


def warn_of_poor_fit(index: Index, space: Space) -> None:
    """Warn on standard error if the encoder of a space does not read the language of an index."""
    if (tokenizer := tokenizer_of(space.spec)) is None:
        return
    with index.read() as state:
        texts = [document.text for document in next(state.scan(SAMPLE_TEXTS), [])]
    fit = vocabulary_fit(tokenizer, texts)
    if fit.is_poor:
        note(
            f"{space.name} does not read the language of {fit.poor} of {fit.texts} sampled texts "
            "well; teach it: semsearch train translate --parallel FILE"
        )


def warn_of_unknown_words(name: str, encoder: Encoder) -> None:
    """Report on standard error how many words had no vector, if the encoder counts them."""
    if isinstance(encoder, CountsWords) and (coverage := encoder.coverage()).unknown:
        share = f"{coverage.unknown / coverage.words:.1%} of {coverage.words:,} words"
        most = ", ".join(coverage.most_frequent_unknown)
        note(f"{name}: {share} have no vector; most often: {most}")
