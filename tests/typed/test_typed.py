"""The program that `scripts/check` checks with `mypy --strict` runs correctly."""

from __future__ import annotations

import typed_user


def test_program_runs(tmp_path):
    texts = ["a red fish", "a blue bird", "a red fish swims"]
    assert [summary.added for summary in typed_user.build(tmp_path / "index", texts)] == [3]
    found = typed_user.ask(tmp_path / "index", "red")
    assert found[0]["text"] == "a red fish"
    assert {one["text"] for one in found} == set(texts)
    assert typed_user.nearest(texts) == (0, 2)
