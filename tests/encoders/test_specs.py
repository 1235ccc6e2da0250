"""The parts of a model's spec."""

from __future__ import annotations

import pytest

from semsearch.encoders.specs import ModelSpec, Pooling, parse_spec, pinned, unpinned
from semsearch.errors import EncoderError

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("minilm", ("minilm", None, None)),
        ("minilm@cls", ("minilm", None, Pooling.CLS)),
        ("some/model", ("some/model", None, None)),
        ("some/model@max", ("some/model", None, Pooling.MAX)),
        ("some/model@v1.0", ("some/model", "v1.0", None)),
        ("some/model@refs/pr/1", ("some/model", "refs/pr/1", None)),
        (f"some/model@{COMMIT}@mean", ("some/model", COMMIT, Pooling.MEAN)),
        ("some/model@mean@pooler", ("some/model", "mean", Pooling.POOLER)),
        ("folder", ("folder", None, None)),
        ("./folder@cls", ("./folder", None, Pooling.CLS)),
        ("me@mean", ("me@mean", None, None)),
        ("me@mean@mean", ("me@mean", None, Pooling.MEAN)),
        ("me@home", ("me@home", None, None)),
        ("minilm@192d", ("minilm", None, None, 192)),
        ("some/model@v1@cls@8d", ("some/model", "v1", Pooling.CLS, 8)),
        ("./folder@8d", ("./folder", None, None, 8)),
        ("me@8d", ("me@8d", None, None)),
    ],
)
def test_parts(spec, parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("folder", "me@mean", "me@home", "me@8d"):
        (tmp_path / folder).mkdir()
    assert parse_spec(spec) == ModelSpec(*parts)
    assert str(parse_spec(spec)) == spec


@pytest.mark.parametrize("spec", ["minilm@sum", "./folder@v1", "/x@v1", "~/x@v1", "a@b@c", "a@"])
def test_unknown_poolings_are_refused(spec, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EncoderError):
        parse_spec(spec)


@pytest.mark.parametrize("spec", ["some/model", "some/model@v1"])
@pytest.mark.parametrize("pooling", ["", "@cls"])
def test_pinning(spec, pooling):
    assert pinned(spec + pooling, None) == spec + pooling
    assert pinned(spec + pooling, COMMIT) == f"some/model@{COMMIT}{pooling}"
    assert unpinned(f"some/model@{COMMIT}{pooling}") == f"some/model{pooling}"
    assert unpinned(spec + pooling) == spec + pooling
