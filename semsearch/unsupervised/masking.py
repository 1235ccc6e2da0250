"""Masked language modelling: which tokens are hidden, and how (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy
from numpy.typing import NDArray

#: The part of a text's tokens that is to be found out.
CHOSEN = 0.15
#: Of these, the part that is hidden behind [MASK], and that replaced by a random token.
HIDDEN = 0.8
REPLACED = 0.1

Ids = NDArray[numpy.int64]


class Masked(NamedTuple):
    """Texts with some tokens changed: ids of shape (n, length), what is asked, the answers.

    ``places`` counts through the flattened ids; both it and ``answers`` have shape (asked,).
    """

    ids: Ids
    places: Ids
    answers: Ids


def mask_tokens(
    ids: Ids,
    maskable: NDArray[numpy.bool_],
    mask_id: int,
    replacements: Ids,
    generator: numpy.random.Generator,
) -> Masked:
    """Choose 15 % of each text's tokens; hide 80 % of all chosen, replace 10 %, keep 10 %.

    The parts are exact but for rounding; of each text at least one token is chosen.

    Args:
        ids: the texts, shape (n, length).
        maskable: which of these may be chosen: no special tokens, no padding; one or more a text.
        mask_id: of [MASK].
        replacements: the ids from which random tokens are drawn.
        generator: draws all that.
    """
    counts = numpy.maximum(1, numpy.rint(CHOSEN * maskable.sum(axis=1)))
    keys = numpy.where(maskable, generator.random(ids.shape), 2.0)
    ranks = keys.argsort(axis=1).argsort(axis=1)
    places = numpy.flatnonzero((ranks < counts[:, None]) & maskable)
    order = generator.permutation(places)
    hidden, replaced = round(HIDDEN * len(order)), round(REPLACED * len(order))
    changed = ids.copy().ravel()
    changed[order[:hidden]] = mask_id
    changed[order[hidden : hidden + replaced]] = generator.choice(replacements, replaced)
    return Masked(changed.reshape(ids.shape), places, ids.ravel()[places])
