"""The warning about a language that an encoder does not read suggests a valid command."""

from __future__ import annotations

import pytest

from semsearch.cli.language_fit import poor_fit
from semsearch.encoders.vocabulary_fit import Fit
from semsearch.stores.protocol import Space


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        ("minilm", "train translate --parallel"),
        ("some/model", "train translate --teacher some/model --parallel"),
        # A teacher is not truncated.
        ("minilm@96d", "train translate --parallel"),
        ("some/model@96d", "train translate --teacher some/model --parallel"),
    ],
)
def test_suggested_command(spec, command):
    space = Space(1, "notes", spec, "f", 96, "float32", True, {})
    assert command in poor_fit(space, Fit(texts=10, poor=9, pieces_per_word=1.9))
    assert poor_fit(space, Fit(texts=10, poor=1, pieces_per_word=1.9)) is None
