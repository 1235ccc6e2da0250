"""What a vector of an encoder has to be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

from semsearch.errors import NoVectorError
from semsearch.protocols import Encoder, Matrix

#: How far from 1 the norm of a unit vector may be: float16 keeps three digits.
NORM_TOLERANCE = 2e-3


def off_unit(matrix: Matrix) -> NDArray[numpy.bool]:
    """Which rows are not of unit length: NaN, infinite, zero or not normalised.

    Args:
        matrix: shape (n, dimension).

    Returns:
        Shape (n,).
    """
    with numpy.errstate(over="ignore", invalid="ignore"):
        norms = numpy.linalg.norm(matrix, axis=1)
    unit: NDArray[numpy.bool] = abs(norms - 1) <= NORM_TOLERANCE
    return ~unit  # NaN is off, too


def check_unit(matrix: Matrix, spec: str) -> Matrix:
    """The matrix, if all its rows are unit vectors.

    Args:
        matrix: what the encoder of that spec returned, shape (n, dimension).
        spec: named in the message.

    Raises:
        NoVectorError: some rows are not.
    """
    rows = numpy.flatnonzero(off_unit(matrix)).tolist()
    if rows:
        raise NoVectorError(spec, rows)
    return matrix


def encode_usable(encoder: Encoder, texts: Sequence[str]) -> tuple[Matrix, list[int]]:
    """The vectors of the texts that have one.

    Args:
        encoder: any, ours or a user's.
        texts: documents.

    Returns:
        Unit vectors, shape (m, dimension), and the m places of their texts in `texts`.
    """
    places = list(range(len(texts)))
    while places:
        try:
            matrix = encoder.encode_documents([texts[place] for place in places])
            return check_unit(matrix, encoder.spec), places
        except NoVectorError as error:
            if not error.rows:
                raise
            places = [place for row, place in enumerate(places) if row not in error.rows]
    return numpy.empty((0, encoder.dimension), numpy.float32), []
