"""Random unit vectors."""

from __future__ import annotations

import numpy


def normalised(rows):
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True)).astype(numpy.float32)


def unit_rows(n, dimension, seed=0):
    return normalised(numpy.random.default_rng(seed).standard_normal((n, dimension)))


def planted(n=400, groups=12, dimension=48, spread=0.6, seed=0):
    """Vectors around random centres, groups of unequal sizes, and the group of each."""
    random = numpy.random.default_rng(seed)
    centres = normalised(random.standard_normal((groups, dimension)))
    labels = (groups * random.random(n) ** 2).astype(int)
    noise = normalised(random.standard_normal((n, dimension)))
    return normalised(centres[labels] + spread * noise), labels
