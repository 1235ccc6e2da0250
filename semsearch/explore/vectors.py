"""Validates unit vectors, the rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import NDArray

from semsearch.errors import ArgumentError
from semsearch.protocols import Matrix

#: The allowed deviation of a vector's length from 1: float16 has three digits.
LENGTH_TOLERANCE = 1e-2

#: Row numbers of a matrix, or other integers per row.
Rows = NDArray[Any]


def check_unit_rows(vectors: Any) -> Matrix:
    """Validate vectors as the rows of a matrix, shape (n, dimension), without copying if possible.

    Raises:
        ArgumentError: they are not a matrix of numbers, or a row is not of unit length.
    """
    matrix: Matrix = numpy.asarray(vectors)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise ArgumentError(f"vectors must be the rows of a matrix, not of shape {matrix.shape}")
    lengths = numpy.sqrt(numpy.einsum("ij,ij->i", matrix, matrix, dtype="f4", casting="same_kind"))
    for row in numpy.flatnonzero(~(abs(lengths - 1) <= LENGTH_TOLERANCE)):  # NaN, too
        raise ArgumentError(
            f"vectors must be of unit length, but the length of row {row} is {lengths[row]:g}"
        )
    return matrix
