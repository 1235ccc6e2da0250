"""Specs of models, finding them, and fingerprints of their files."""

from __future__ import annotations

import json
import shutil

import pytest
from layouts import LAYOUTS, write_model

from semsearch.encoders import current_fingerprint, load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.specs import (
    ModelSpec,
    Pooling,
    Precision,
    described_precision,
    parse_spec,
    pinned,
    unpinned,
    with_dimension,
)
from semsearch.errors import EncoderError, ModelNotFoundError

WEIGHTS = "model.safetensors"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


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


def fingerprint(folder):
    return find_model(str(folder)).fingerprint


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_file_is_covered(layout, plain_bert, tmp_path):
    folder = write_model(layout, plain_bert, tmp_path / "model")
    seen = [fingerprint(folder)]
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        if file.name in ("README.md", "modules.json"):
            continue
        content = file.read_bytes()
        if file.suffix == ".json":
            value = json.loads(content)
            value = value | {"new": 1} if isinstance(value, dict) else [*value, "new"]
            content = json.dumps(value).encode()
        file.write_bytes(content if file.suffix == ".json" else content + b"x")
        seen.append(fingerprint(folder))
    assert len(set(seen)) == len(seen) > 1


def test_unknown_files_are_covered_and_cards_are_not(plain_bert, tmp_path):
    folder = shutil.copytree(plain_bert, tmp_path / "copy")
    seen = [fingerprint(folder)]
    for name in ("vocab.txt", "model.spm", "bpe.codes"):
        (folder / name).write_text("a\nb\nc\n")
        seen.append(fingerprint(folder))
    assert len(set(seen)) == 4
    for name in ("README.md", "train_script.py", "optimizer.pt"):
        (folder / name).write_text("ignored")
    assert fingerprint(folder) == seen[-1]


def test_the_current_fingerprint_equals_the_encoders(plain_bert, minilm, tmp_path):
    """It is computed without loading the model."""
    assert current_fingerprint("minilm") == minilm.fingerprint
    assert current_fingerprint("hashing:32") == load_encoder("hashing:32").fingerprint
    folder = shutil.copytree(plain_bert, tmp_path / "copy")
    assert current_fingerprint(str(folder)) == fingerprint(folder)
    shutil.rmtree(folder)
    with pytest.raises(ModelNotFoundError):
        current_fingerprint(str(folder))


@pytest.mark.parametrize(
    ("spec", "dimension", "expected"),
    [
        ("minilm", 1, "minilm@1d"),
        ("some/model@v1@cls", 96, "some/model@v1@cls@96d"),
        ("minilm", 0, None),
        ("minilm@8d", 4, None),
        ("hashing", 4, None),
        ("glove:x.txt", 4, None),
    ],
)
def test_a_spec_with_fewer_dimensions(spec, dimension, expected):
    if expected is None:
        with pytest.raises(EncoderError):
            with_dimension(spec, dimension)
    else:
        assert with_dimension(spec, dimension) == expected


@pytest.mark.parametrize(
    ("stored", "expected"),
    [("fp32", "fp32"), ("int8", "int8"), ("bf16", "auto"), ("fp16", "auto"), (None, "auto")],
)
def test_the_precision_with_which_an_encoder_is_loaded_again(stored, expected):
    assert described_precision({"precision": stored}) is Precision(expected)
