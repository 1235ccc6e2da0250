"""``semsearch info``: the contents of an index."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import format_option, index_option
from semsearch.cli.render import json_text, say, shortened
from semsearch.errors import quantity
from semsearch.filters import field_text, literal_text
from semsearch.index import Index
from semsearch.records import metadata_field
from semsearch.storage.interface import Field, IndexInfo

EXAMPLE_MAX_CHARACTERS = 60


@click.command("info")
@index_option
@format_option("text", "json", description="Text for people, JSON for programs.")
def info_command(directory: Path, format_name: str) -> None:
    """Show what an index holds: documents, passages, embedding spaces, files.

    \b
    semsearch info --index indexes/films
    semsearch info --format json
    """
    with Index.open(directory) as index:
        info = index.info()
    if format_name == "json":
        click.echo(json_text(_record(info), indent=2))
        return
    for line in _lines(info):
        say(line)


def _record(info: IndexInfo) -> dict[str, Any]:
    snapshots = {name: snapshot._asdict() for name, snapshot in info.snapshots.items()}
    return {
        "path": str(info.path),
        "format": info.format,
        "documents": info.documents,
        "passages": info.passages,
        "language": None if info.language is None else info.language._asdict(),
        "fields": [field.name for field in info.fields],
        "indexed_fields": info.indexed_fields,
        "field_kinds": {field.name: field.kinds for field in info.fields},
        "examples": {field.name: field.example for field in info.fields},
        "spaces": [
            {
                "name": space.name,
                "encoder": space.spec,
                "dimension": space.dimension,
                "fingerprint": space.fingerprint,
                "complete": space.complete,
                "snapshot": snapshots.get(space.name),
                **space.description,
            }
            for space in info.spaces
        ],
        "files": list(info.files),
        "sizes": info.files,
    }


def _lines(info: IndexInfo) -> Iterator[str]:
    yield f"index: {info.path} (format {info.format})"
    yield f"documents: {info.documents:,}"
    yield f"passages: {info.passages:,}"
    stemmer = "Porter (English)" if info.language is None else info.language.name
    yield f"BM25: {f'stemmer {stemmer}' if info.has_words else 'none'}"
    yield f"fields: {', '.join(field.name for field in info.fields) or 'none'}"
    for field in info.fields:
        indexed = ", indexed" if field.name in info.indexed_fields else ""
        yield f"field {_described(field)}{indexed}"
    for space in info.spaces:
        precision = space.description.get("precision", "fp32")
        if "agreement" in space.description:
            found = space.description["agreement"]
            precision += f" (finds {100 * found:.1f} % of the nearest ten of fp32)"
        yield (
            f"space {space.name}: encoder {space.spec}, dimension {space.dimension}, "
            f"{precision}, fingerprint {space.fingerprint[:12]}"
            f"{'' if space.complete else ', not complete'}"
        )
    for snapshot in info.snapshots.values():
        vectors = quantity(snapshot.vectors, "vector")
        yield f"snapshot {snapshot.file}: {snapshot.kind}, {vectors}, recall {snapshot.recall:.3f}"
    for name, size in info.files.items():
        yield f"file {name}: {size / 1e6:,.3f} MB"


def _described(field: Field) -> str:
    """``year: number (1,598), text (1), such as 1990``."""
    kinds = ", ".join(f"{kind} ({count:,})" for kind, count in field.kinds.items())
    such = ""
    if field.example is not None:
        such = f", such as {shortened(literal_text(field.example), EXAMPLE_MAX_CHARACTERS)}"
    return f"{field_text(metadata_field(field.name))}: {kinds}{such}"
