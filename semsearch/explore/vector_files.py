"""Writes passages with their vectors: as Parquet or JSON lines, or separately (NumPy, FAISS)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

import numpy

from semsearch.explore.contents import Block
from semsearch.explore.tables import json_line


def write_vectors_as_json(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a line for each passage; returns their number."""
    del dimension
    count = 0
    with files[0].open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            for row, vector in zip(block.rows, block.vectors.tolist(), strict=True):
                lines.write(json_line({**row, "vector": vector}))
            count += len(block.rows)
    return count


def write_vectors_as_parquet(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a row for each passage; returns their number."""
    import pyarrow
    from pyarrow import parquet

    text, number = pyarrow.string(), pyarrow.int64()
    passages = pyarrow.schema([("id", text), ("start", number), ("end", number), ("text", text)])
    vector = pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), dimension))
    count = 0
    with parquet.ParquetWriter(files[0], passages.append(vector)) as writer:
        for block in blocks:
            rows = pyarrow.Table.from_pylist(block.rows, passages)
            values = pyarrow.array(block.vectors.ravel())
            vectors = pyarrow.FixedSizeListArray.from_arrays(values, dimension)
            writer.write_table(rows.append_column(vector, vectors))
            count += len(block.rows)
    return count


def write_numpy(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a float32 matrix, and the passages of its rows as JSON lines; returns their number."""

    def write_header(matrix: IO[bytes], count: int) -> None:
        # Its length is constant: numpy leaves room for the first axis to grow.
        numpy.lib.format.write_array_header_1_0(
            matrix, {"descr": "<f4", "fortran_order": False, "shape": (count, dimension)}
        )

    count = 0
    file, passages = files
    with file.open("wb") as matrix, passages.open("w", encoding="utf-8", newline="\n") as lines:
        write_header(matrix, 0)
        for block in blocks:
            matrix.write(block.vectors.astype("<f4").tobytes())
            lines.writelines(map(json_line, block.rows))
            count += len(block.rows)
        matrix.seek(0)
        write_header(matrix, count)
    return count


def write_faiss(files: Sequence[Path], blocks: Iterable[Block], dimension: int) -> int:
    """Write a flat inner product index, and the passages of its ids; returns their number."""
    import faiss

    index = faiss.IndexFlatIP(dimension)
    file, passages = files
    with passages.open("w", encoding="utf-8", newline="\n") as lines:
        for block in blocks:
            index.add(block.vectors)
            lines.writelines(map(json_line, block.rows))
    with file.open("wb") as stream:
        faiss.write_index(index, faiss.PyCallbackIOWriter(stream.write))
    return int(index.ntotal)
