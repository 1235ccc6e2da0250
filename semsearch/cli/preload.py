"""Load encoders in a thread while the rest of the program is imported.

A process that answers one query spends most of its time on imports and on loading its model.
OpenVINO loads a model without holding Python's global lock, so a thread starts with that.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from semsearch.protocols import Encoder


#: Never freed: that takes longer than a query on an open index, and the process ends.
_loaded: list[Encoder] = []


def preload_for_documents(spec: str, precision: str) -> Encoder:
    """An encoder that loads in the background; its first use waits for it."""
    from semsearch.encoders import load_encoder

    encoder = load_encoder(spec, precision=precision)
    _begin(encoder.encode_documents, ["."] * 8)  # enough to be batched like documents
    return encoder


def preload_for_queries(index: Path, space: str | None = None) -> list[Encoder]:
    """The encoder of a space (None: the first), which loads in the background.

    Returns:
        One encoder, or none if the index does not name one that can be loaded.
    """
    from semsearch.encoders import load_encoder
    from semsearch.encoders.specs import described_precision

    # Read without SQLAlchemy, whose import takes long.
    query = (
        "SELECT spec, description FROM spaces WHERE :name IS NULL OR name = :name ORDER BY space_id"
    )
    with suppress(Exception):  # raised again when the index is opened or the encoder is needed
        uri = f"{(index / 'index.sqlite').absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            spec, description = connection.execute(query, {"name": space}).fetchone()
        precision = described_precision(json.loads(description))
        encoder = load_encoder(spec, precision=precision, local_files_only=True)
        _loaded.append(encoder)
        _begin(encoder.encode_queries, ["what is meant by a question of usual length"])
        return [encoder]
    return []


def _begin(encode: Callable[[Sequence[str]], object], texts: list[str]) -> None:
    """Use an encoder once in a thread, to load it. Errors are left to its next use."""

    def quietly() -> None:
        with suppress(Exception):
            encode(texts)

    Thread(target=quietly, name="semsearch-preload").start()
