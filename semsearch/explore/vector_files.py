"""Writes passages with their vectors: as Parquet or JSON lines, or separately (NumPy, FAISS)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy

from semsearch.explore.contents import Block
from semsearch.explore.tables import json_line


def write_vectors_as_json(file: Path, blocks: Iterable[Block]) -> int:
    """Write a line for each passage; returns their number."""
    count = 0
    with file.open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            for row, vector in zip(block.rows, block.vectors.tolist(), strict=True):
                lines.write(json_line({**row, "vector": vector}))
            count += len(block.rows)
    return count


def write_vectors_as_parquet(file: Path, blocks: Iterable[Block], dimension: int) -> int:
    """Write a row for each passage; returns their number."""
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        {
            "id": pyarrow.string(),
            "start": pyarrow.int64(),
            "end": pyarrow.int64(),
            "text": pyarrow.string(),
            "vector": pyarrow.list_(pyarrow.float32(), dimension),
        }
    )
    count = 0
    with pyarrow.parquet.ParquetWriter(file, schema) as writer:
        for block in blocks:
            rows = pyarrow.Table.from_pylist(block.rows, schema.remove(4))
            values = pyarrow.array(block.vectors.ravel())
            vectors = pyarrow.FixedSizeListArray.from_arrays(values, dimension)
            writer.write_table(rows.append_column(schema.field("vector"), vectors))
            count += len(block.rows)
    return count


def write_numpy(file: Path, passages: Path, blocks: Iterable[Block], dimension: int) -> int:
    """Write a float32 matrix, and the passages of its rows as JSON lines; returns their number."""

    def write_header(matrix: IO[bytes], count: int) -> None:
        # Its length is constant: numpy leaves room for the first axis to grow.
        numpy.lib.format.write_array_header_1_0(
            matrix, {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
        )

    count = 0
    with file.open("wb") as matrix, passages.open("w", encoding="utf-8", newline="\n") as lines:
        write_header(matrix, 0)
        for block in blocks:
            matrix.write(block.vectors.astype("<f4").tobytes())
            lines.writelines(map(json_line, block.rows))
            count += len(block.rows)
        matrix.seek(0)
        write_header(matrix, count)
    return count


def write_faiss(file: Path, passages: Path, blocks: Iterable[Block], dimension: int) -> int:
    """Write a flat inner product index, and the passages of its ids; returns their number."""
    import faiss

    index = faiss.IndexFlatIP(dimension)
    with passages.open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            index.add(block.vectors)
            lines.writelines(map(json_line, block.rows))
    with file.open("wb") as stream:
        faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))
    return int(index.ntotal)
