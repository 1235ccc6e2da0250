"""Load encoders in a thread while the rest of the program is imported.

A process that answers one query spends most of its time on imports and on loading its model.
OpenVINO loads a model without holding Python's global lock, so a thread starts with that.
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

from semsearch.arguments import Address

if TYPE_CHECKING:
    from semsearch.protocols import Encoder


class _Named(NamedTuple):
    spec: str
    description: dict[str, Any]


#: A query of typical length: OpenVINO prepares kernels for the lengths that it meets.
TYPICAL_QUERY = "what is meant by a question of usual length"

#: Enough texts that an encoder batches them as it batches documents.
SEVERAL_TEXTS = ["."] * 8

#: Kept until the process exits, to skip the model's teardown.
_kept: deque[Encoder] = deque(maxlen=1)


def preload_for_documents(spec: str, precision: str) -> Encoder:
    """An encoder that loads in the background; its first use waits for it."""
    from semsearch.encoders import load_encoder

    encoder = load_encoder(spec, precision=precision)
    _kept.append(encoder)
    _begin(lambda: encoder.encode_documents(SEVERAL_TEXTS))
    return encoder


def preload_for_queries(index: Path, space: str | None = None) -> list[Encoder]:
    """The encoder of an index, which loads in the background; its first use waits for it.

    Args:
        index: the directory; errors are reported when it is opened.
        space: the name of the embedding space; None takes the first.

    Returns:
        One encoder, or none if the index does not name one that can be loaded.
    """
    encoder = None if isinstance(index, Address) else _encoder(index, space)
    if encoder is None:
        return []
    _kept.append(encoder)
    _begin(lambda: encoder.encode_queries([TYPICAL_QUERY]))
    return [encoder]


def _begin(use: Callable[[], object]) -> None:
    """Use an encoder once in a thread, to load it. Errors are left to its next use."""

    def quietly() -> None:
        with suppress(Exception):
            use()

    Thread(target=quietly, name="semsearch-preload").start()


def _encoder(index: Path, space: str | None) -> Encoder | None:
    named = _named(index, space)
    if named is None:
        return None
    from semsearch.encoders import load_encoder
    from semsearch.encoders.specs import described_precision
    from semsearch.errors import SemsearchError

    with suppress(SemsearchError):  # raised again when the encoder is needed
        precision = described_precision(named.description)
        return load_encoder(named.spec, precision=precision, local_files_only=True)
    return None


def _named(index: Path, space: str | None) -> _Named | None:
    """The encoder that an index names; read without SQLAlchemy, whose import takes long."""
    query = (
        "SELECT spec, description FROM spaces WHERE :name IS NULL OR name = :name ORDER BY space_id"
    )
    uri = f"{(index / 'index.sqlite').absolute().as_uri()}?mode=ro"
    with suppress(sqlite3.Error, ValueError, TypeError):
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            row = connection.execute(query, {"name": space}).fetchone()
        if row:
            return _Named(row[0], dict(json.loads(row[1])))
    return None
