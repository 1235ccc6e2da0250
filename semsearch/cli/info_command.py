"""``semsearch info``: the contents of an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from semsearch.cli.options import existing_index, format_option, index_option
from semsearch.cli.render import json_text, shortened, visible
from semsearch.filters import field_text, literal_text
from semsearch.index import Index
from semsearch.records import metadata_field
from semsearch.storage.interface import Field, IndexInfo
from semsearch.texts import quantity

EXAMPLE_MAX_CHARACTERS = 60


@click.command("info")
@index_option
@format_option("text", "json", description="Text for people, JSON for programs.")
def command(directory: Path | None, format_name: str) -> None:
    """Show what an index holds: documents, passages, embedding spaces, files.

    \b
    semsearch info --index indexes/films
    semsearch info --format json
    """
    with Index.open(existing_index(directory)) as index:
        info = index.info()
    if format_name == "json":
        click.echo(json_text(_record(info), indent=2))
    else:
        for line in _lines(info):
            click.echo(visible(line))


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
                "dtype": space.dtype,
                "complete": space.complete,
                "snapshot": snapshots.get(space.name),
                **space.description,
            }
            for space in info.spaces
        ],
        "files": list(info.files),
        "sizes": info.files,
    }


def _lines(info: IndexInfo) -> list[str]:
    lines = [
        f"index: {info.path} (format {info.format})",
        f"documents: {info.documents:,}",
        f"passages: {info.passages:,}",
        f"BM25: {_stemming(info)}",
        f"fields: {', '.join(name for name, *_ in info.fields) or 'none'}",
    ]
    lines += [
        f"field {_described(field)}{', indexed' if field.name in info.indexed_fields else ''}"
        for field in info.fields
    ]
    lines += [
        f"space {space.name}: encoder {space.spec}, dimension {space.dimension}, {space.dtype}, "
        f"{space.description.get('precision', 'fp32')}, fingerprint {space.fingerprint[:12]}"
        f"{'' if space.complete else ', not complete'}"
        for space in info.spaces
    ]
    lines += [
        f"int8 of {space.name}, measured: {_measured(space.description['parity'])}"
        for space in info.spaces
        if isinstance(space.description.get("parity"), dict)
    ]
    lines += [
        f"snapshot {snapshot.file}: {snapshot.kind}, {quantity(snapshot.vectors, 'vector')}, "
        f"recall {snapshot.recall:.3f}"
        for snapshot in info.snapshots.values()
    ]
    lines += [f"file {name}: {_size(size)}" for name, size in info.files.items()]
    return lines


def _stemming(info: IndexInfo) -> str:
    if not info.has_words:
        return "none"
    if info.language is None:
        return "Porter stemmer and stop words (English)"
    if info.language.name == "none":
        return "no stemmer, no stop words"
    count = len(info.language.stop_words)
    return f"Snowball stemmer '{info.language.name}', {count or 'no'} stop words"


def _described(field: Field) -> str:
    """``year: number (1,598 documents), text (1), such as 1990``."""
    (kind, most), *others = field.kinds.items()
    counts = [f"{kind} ({quantity(most, 'document')})"]
    counts += [f"{other} ({count:,})" for other, count in others]
    such = ""
    if field.example is not None:
        such = f", such as {shortened(literal_text(field.example), EXAMPLE_MAX_CHARACTERS)}"
    return f"{field_text(metadata_field(field.name))}: {', '.join(counts)}{such}"


def _measured(parity: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in parity.items())


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} GB"
