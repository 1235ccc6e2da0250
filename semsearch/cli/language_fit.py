"""Warnings about encoders: words without a vector, and languages that they read poorly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy

from semsearch.cli.render import note
from semsearch.encoders import DEFAULT_ENCODER
from semsearch.encoders.specs import parse_spec
from semsearch.encoders.vocabulary_fit import SAMPLE_TEXTS, poor_fit
from semsearch.errors import quoted
from semsearch.protocols import Encoder, KnowsWords

if TYPE_CHECKING:
    from semsearch.index import Index
    from semsearch.storage.spaces import Space


def sampled_texts(index: Index, passages: int) -> list[str]:
    """Passages spread over an index."""
    spread = numpy.linspace(1, passages, min(passages, SAMPLE_TEXTS), dtype=numpy.int64)
    with index.read() as state:
        return [one.passage.text for one in state.fetch(spread.tolist()).values()]


def warn_of_poor_fit(space: Space, texts: Sequence[str]) -> None:
    """Warn on standard error if the encoder of a space does not read the language of texts."""
    if (letters := poor_fit(space.spec, texts)) is None:
        return
    spec = str(parse_spec(space.spec)._replace(dimension=None))  # a teacher has all its dimensions
    teacher = "" if spec == DEFAULT_ENCODER else f" --base {quoted(spec)}"
    note(
        f"{space.name} does not read the language of these passages well ({letters:.1f} letters "
        f"per piece of its vocabulary); teach it: semsearch train translate{teacher} "
        "--parallel FILE --output DIR"
    )


def warn_of_unknown_words(name: str, encoder: Encoder) -> None:
    """Report on standard error how many words had no vector, if the encoder counts them."""
    if not isinstance(encoder, KnowsWords):
        return
    coverage = encoder.coverage()
    if coverage.unknown:
        share = f"{coverage.unknown / coverage.words:.1%} of {coverage.words:,} words"
        most = ", ".join(coverage.most_frequent_unknown)
        note(f"{name}: {share} have no vector; most often: {most}")
