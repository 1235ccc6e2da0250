"""Fusing rankings."""

from __future__ import annotations

import pytest

from semsearch.fusion import reciprocal_rank_fusion


def test_reciprocal_rank_fusion_by_hand():
    fused = dict(reciprocal_rank_fusion([[1, 2, 3], [3, 1]], constant=60))
    assert list(fused) == [1, 3, 2]
    assert fused[1] == pytest.approx(1 / 61 + 1 / 62)
    assert fused[3] == pytest.approx(1 / 63 + 1 / 61)
    assert fused[2] == pytest.approx(1 / 62)


def test_ties_are_broken_by_item():
    assert [item for item, _ in reciprocal_rank_fusion([[5], [4]])] == [4, 5]
