"""What an encoder of words could not read."""

from __future__ import annotations

import click

from semsearch.cli.render import visible
from semsearch.protocols import CountsWords, Encoder


def tell_unknown_words(name: str, encoder: Encoder) -> None:
    """Say on standard error how many words have had no vector, if the encoder counts that."""
    if not isinstance(encoder, CountsWords):
        return
    coverage = encoder.coverage()
    if coverage.unknown:
        share = f"{coverage.unknown / coverage.words:.1%} of {coverage.words:,} words"
        most = ", ".join(coverage.most_frequent_unknown)
        click.echo(visible(f"{name}: {share} have no vector; most often: {most}"), err=True)
