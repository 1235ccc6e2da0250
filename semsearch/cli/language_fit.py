"""Warnings about encoders: words without a vector, and languages that they read poorly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from semsearch.cli.render import note
from semsearch.encoders.base import KnowsWords
from semsearch.encoders.vocabulary_fit import SAMPLE_TEXTS, poor_fit
from semsearch.protocols import Encoder

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.storage.spaces import Space


def warn_of_poor_fit(index: Index, space: Space) -> None:
    """Warn on standard error if the encoder of a space does not read the language of an index."""
    with index.read() as state:
        texts = [document.text for document in next(state.scan(SAMPLE_TEXTS), [])]
    if (letters := poor_fit(space.spec, texts)) is not None:
        note(
            f"{space.name} does not read the language of these passages well ({letters:.1f} "
            "letters per piece of its vocabulary); teach it: semsearch train translate "
            "--parallel FILE"
        )


def warn_of_unknown_words(name: str, encoder: Encoder) -> None:
    """Report on standard error how many words had no vector, if the encoder counts them."""
    if isinstance(encoder, KnowsWords) and (coverage := encoder.coverage()).unknown:
        share = f"{coverage.unknown / coverage.words:.1%} of {coverage.words:,} words"
        most = ", ".join(coverage.most_frequent_unknown)
        note(f"{name}: {share} have no vector; most often: {most}")
