"""Specs of models, finding them, and fingerprints of their files."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext

import pytest
from layouts import LAYOUTS, write_model

from semsearch.encoders import current_fingerprint, load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.specs import (
    ModelSpec,
    Pooling,
    described_precision,
    parse_spec,
    pinned,
    unpinned,
)
from semsearch.errors import EncoderError, ModelNotFoundError, UnsafeModelError

WEIGHTS = "model.safetensors"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def folder(tmp_path):
    """A copy of the bundled model's small files, with made-up weights."""
    copy = tmp_path / "model"
    shutil.copytree(find_model("minilm").path, copy, ignore=shutil.ignore_patterns(WEIGHTS))
    (copy / WEIGHTS).write_bytes(b"weights")
    return copy


def test_found_models_are_remembered_by_name_or_absolute_path(folder, monkeypatch):
    found = find_model("minilm")
    assert found.spec == "minilm"
    assert (found.path / WEIGHTS).stat().st_size > 90_000_000
    monkeypatch.chdir(folder.parent)
    assert find_model("model").spec == str(folder)


def test_what_is_no_model(folder, tmp_path):
    for spec in ("./nothing", "/nothing", "~/nothing", "nobody/nothing", "a//b"):
        with pytest.raises(ModelNotFoundError):
            load_encoder(spec)
    for spec in ("hashing", "hashing:64", "glove:vectors.txt"):
        with pytest.raises(EncoderError):
            find_model(spec)
    with pytest.raises(ModelNotFoundError, match=r"config.json"):
        find_model(str(tmp_path))
    (folder / WEIGHTS).unlink()
    with pytest.raises(ModelNotFoundError):
        find_model(str(folder))


@pytest.mark.parametrize(
    ("named", "error"),
    [
        ({"attn_implementation": "evil/kernel"}, UnsafeModelError),
        ({"_attn_implementation": {"text": "evil/kernel:run"}}, UnsafeModelError),
        ({"text_config": {"attn_implementation": "evil/kernel@v1"}}, UnsafeModelError),
        ({"attn_implementation": "sdpa", "_name_or_path": "evil/model"}, None),
    ],
)
def test_kernels_from_the_hub(folder, named, error):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | named))
    with pytest.raises(error) if error else nullcontext():
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


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("minilm@cls", ("minilm", None, Pooling.CLS)),
        ("some/model", ("some/model", None, None)),
        ("some/model@v1.0", ("some/model", "v1.0", None)),
        (f"some/model@{COMMIT}@mean", ("some/model", COMMIT, Pooling.MEAN)),
        ("some/model@mean@pooler", ("some/model", "mean", Pooling.POOLER)),
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


def test_unknown_poolings_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for spec in ("minilm@sum", "./folder@v1", "/x@v1", "~/x@v1", "a@b@c", "a@"):
        with pytest.raises(EncoderError):
            parse_spec(spec)


@pytest.mark.parametrize("spec", ["some/model", "some/model@v1"])
@pytest.mark.parametrize("pooling", ["", "@cls"])
def test_pinning(spec, pooling):
    assert pinned(spec + pooling, None) == spec + pooling
    assert pinned(spec + pooling, COMMIT) == f"some/model@{COMMIT}{pooling}"
    assert unpinned(f"some/model@{COMMIT}{pooling}") == f"some/model{pooling}"
    assert unpinned(spec + pooling) == spec + pooling


def fingerprint(folder):
    return find_model(str(folder)).fingerprint


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_file_is_covered(layout, plain_bert, tmp_path):
    folder = write_model(layout, plain_bert, tmp_path / "model")
    seen = [fingerprint(folder)]
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        if file.name in ("README.md", "modules.json"):
            continue
        if file.suffix == ".json":
            value = json.loads(file.read_text())
            changed = value | {"new": 1} if isinstance(value, dict) else [*value, "new"]
            file.write_text(json.dumps(changed))
        else:
            file.write_bytes(file.read_bytes() + b"x")
        seen.append(fingerprint(folder))
    assert len(set(seen)) == len(seen) > 1


def test_unknown_files_are_covered_and_cards_are_not(plain_bert, tmp_path):
    """The current fingerprint, which is computed without loading the model."""
    folder = shutil.copytree(plain_bert, tmp_path / "copy")
    seen = [fingerprint(folder)]
    for name in ("vocab.txt", "model.spm", "bpe.codes"):
        (folder / name).write_text("a\nb\nc\n")
        seen.append(fingerprint(folder))
    assert len(set(seen)) == 4
    for name in ("README.md", "train_script.py", "optimizer.pt"):
        (folder / name).write_text("ignored")
    assert fingerprint(folder) == seen[-1] == current_fingerprint(str(folder))
    shutil.rmtree(folder)
    with pytest.raises(ModelNotFoundError):
        current_fingerprint(str(folder))
    for spec in ("minilm", "hashing:32"):
        assert current_fingerprint(spec) == load_encoder(spec).fingerprint


def test_the_precision_with_which_an_encoder_is_loaded_again():
    stored = ("fp32", "int8", "bf16", "fp16", None)
    found = [described_precision({"precision": one}).value for one in stored]
    assert found == ["fp32", "int8", "float", "float", "float"]
