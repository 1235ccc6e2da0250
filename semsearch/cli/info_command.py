"""``semsearch info``: what an index holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from semsearch.cli.command import Command
from semsearch.cli.options import existing_index, format_option, index_option
from semsearch.cli.render import visible
from semsearch.index import Index, IndexInfo

__all__ = ["command"]


@click.command("info", cls=Command)
@index_option
@format_option("text", "json", description="For people or for programs.")
def command(directory: Path | None, format_name: str) -> None:
    """Tell what an index holds: documents, chunks, embedding spaces, files.

    \b
    semsearch info --index indexes/films
    semsearch info --format json
    """
    with Index.open(existing_index(directory)) as index:
        info = index.info()
    if format_name == "json":
        click.echo(json.dumps(_record(info), ensure_ascii=False, indent=2))
    else:
        for line in _lines(info):
            click.echo(visible(line))


def _record(info: IndexInfo) -> dict[str, Any]:
    return {
        "path": str(info.path),
        "format": info.format,
        "documents": info.documents,
        "chunks": info.chunks,
        "fields": info.fields,
        "spaces": [
            {
                "name": space.name,
                "encoder": space.spec,
                "dimension": space.dimension,
                "fingerprint": space.fingerprint,
                "dtype": space.dtype,
                "complete": space.complete,
                "snapshot": _snapshot_record(info, space.name),
                **space.description,
            }
            for space in info.spaces
        ],
        "files": list(info.files),
        "sizes": info.files,
    }


def _snapshot_record(info: IndexInfo, name: str) -> dict[str, Any] | None:
    snapshot = info.snapshots.get(name)
    if snapshot is None:
        return None
    return {
        "file": snapshot.file,
        "kind": snapshot.kind,
        "vectors": snapshot.vectors,
        "recall": snapshot.recall,
    }


def _lines(info: IndexInfo) -> list[str]:
    lines = [
        f"index: {info.path} (format {info.format})",
        f"documents: {info.documents:,}",
        f"chunks: {info.chunks:,}",
        f"fields: {', '.join(info.fields) or 'none'}",
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
        f"snapshot {snapshot.file}: {snapshot.kind}, {snapshot.vectors:,} vectors, "
        f"recall {snapshot.recall:.3f}"
        for snapshot in info.snapshots.values()
    ]
    lines += [f"file {name}: {_size(size)}" for name, size in info.files.items()]
    return lines


def _measured(parity: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in parity.items())


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} GB"
