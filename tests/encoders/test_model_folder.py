"""Finding models; refusing folders without one."""

from __future__ import annotations

import shutil

import pytest

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.errors import EncoderError, ModelNotFoundError

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    """A copy of the bundled model's small files, with made-up weights."""
    copy = tmp_path / "model"
    shutil.copytree(find_model("minilm").path, copy, ignore=shutil.ignore_patterns(WEIGHTS))
    (copy / WEIGHTS).write_bytes(b"weights")
    return copy


def test_the_bundled_model_is_found():
    found = find_model("minilm")
    assert found.spec == "minilm"
    assert (found.path / WEIGHTS).stat().st_size > 90_000_000


def test_a_folder_is_remembered_by_its_absolute_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert find_model("model").spec == str(folder)


@pytest.mark.parametrize("spec", ["./nothing", "/nothing", "~/nothing", "nobody/nothing", "a//b"])
def test_no_such_model(spec):
    with pytest.raises(ModelNotFoundError):
        load_encoder(spec)


@pytest.mark.parametrize("spec", ["hashing", "hashing:64", "glove:vectors.txt"])
def test_encoders_that_are_not_models(spec):
    with pytest.raises(EncoderError):
        find_model(spec)


def test_a_folder_without_a_model(folder, tmp_path):
    with pytest.raises(ModelNotFoundError, match=r"config.json"):
        find_model(str(tmp_path))
    (folder / WEIGHTS).unlink()
    with pytest.raises(ModelNotFoundError):
        find_model(str(folder))


@pytest.mark.parametrize("device", [None, "cpu"])
def test_invalid_weights_are_refused(folder, device):
    with pytest.raises(EncoderError):
        load_encoder(str(folder), device=device).encode_queries(["a text"])


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}', '[{"type": "x"}]'])
def test_broken_modules(folder, content):
    (folder / "modules.json").write_text(content)
    with pytest.raises(EncoderError, match=r"modules.json"):
        find_model(str(folder))
