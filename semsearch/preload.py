"""Encoders that load while the rest of the program is still being imported.

A process that answers one query spends most of its time on imports and on loading its model.
OpenVINO compiles a model without holding Python's lock, so a thread begins with that first.
"""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from semsearch.addresses import Address

if TYPE_CHECKING:
    from semsearch.protocols import Encoder


class _Named(NamedTuple):
    spec: str
    description: dict[str, Any]


#: As long as queries usually are: what OpenVINO prepares for it, it need not prepare for them.
USUAL = "what is meant by a question of usual length"

#: So many that an encoder runs them as it runs the documents of a corpus.
SEVERAL = ["."] * 8

#: Kept until the process exits, to skip the model's teardown.
_kept: deque[Encoder] = deque(maxlen=1)


def preload_for_documents(spec: str, precision: str) -> Encoder:
    """An encoder that goes on loading: its first use waits until it is loaded."""
    from semsearch.encoders import load_encoder

    encoder = load_encoder(spec, precision=precision)
    _kept.append(encoder)
    _begin(lambda: encoder.encode_documents(SEVERAL))
    return encoder


def preload_for_queries(index: Path, space: str | None = None) -> list[Encoder]:
    """The encoder of an index, by what the index says of it; it goes on loading, too.

    Args:
        index: the place; whatever is wrong with it is reported when it is opened.
        space: the name of the embedding space; None takes the first.

    Returns:
        One encoder, or none when the index does not name one that can be loaded.
    """
    encoder = None if isinstance(index, Address) else _encoder(index, space)
    if encoder is None:
        return []
    _kept.append(encoder)
    _begin(lambda: encoder.encode_queries([USUAL]))
    return [encoder]


def _begin(use: Callable[[], object]) -> None:
    """Load what is loaded at the first use; if that fails, so will the next use, and tell."""

    def quietly() -> None:
        with suppress(Exception):
            use()

    Thread(target=quietly, name="semsearch-preload").start()


def _encoder(index: Path, space: str | None) -> Encoder | None:
    named = _named(index, space)
    if named is None:
        return None
    from semsearch.encoders import load_encoder
    from semsearch.encoders.precision import described_precision
    from semsearch.errors import SemsearchError

    with suppress(SemsearchError):  # whoever needs it will load it again, and hear of this
        precision = described_precision(named.description)
        return load_encoder(named.spec, precision=precision, local_files_only=True)
    return None


def _named(index: Path, space: str | None) -> _Named | None:
    """What the index says of its encoder; read without SQLAlchemy, which takes long to import."""
    query = (
        "SELECT spec, description FROM spaces WHERE :name IS NULL OR name = :name ORDER BY space_id"
    )
    uri = f"{(index / 'index.sqlite').absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.Error, ValueError, TypeError):
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.execute("PRAGMA trusted_schema = OFF")
            row = connection.execute(query, {"name": space}).fetchone()
        if row:
            return _Named(row[0], dict(json.loads(row[1])))
    return None
