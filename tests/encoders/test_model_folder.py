"""Finding models, refusing unsafe ones, and fingerprints."""

from __future__ import annotations

import json
import shutil

import pytest

from semsearch.encoders import current_fingerprint, load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.errors import EncoderError, ModelNotFoundError

WEIGHTS = "model.safetensors"


@pytest.fixture
def folder(tmp_path):
    """A copy of the bundled model's small files, with made-up weights."""
    bundled = find_model("minilm").path
    copy = tmp_path / "model"
    shutil.copytree(bundled, copy, ignore=shutil.ignore_patterns(WEIGHTS))
    (copy / WEIGHTS).write_bytes(b"weights")
    return copy


def edit(file, **changes):
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def test_the_bundled_model_is_found_without_running_its_code():
    found = find_model("minilm")
    assert found.spec == "minilm"
    assert (found.path / WEIGHTS).stat().st_size > 90_000_000


def test_without_the_package_the_hub_is_asked(monkeypatch):
    monkeypatch.setattr("semsearch.encoders.model_folder._bundled_folder", lambda: None)
    with pytest.raises(ModelNotFoundError, match="all-MiniLM-L6-v2"):
        find_model("minilm")


def test_a_folder_is_remembered_by_its_absolute_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert find_model("model").spec == str(folder)


@pytest.mark.parametrize("spec", ["./nothing", "/nothing", "~/nothing", "nobody/nothing", "a//b"])
def test_no_such_model(spec):
    with pytest.raises(ModelNotFoundError):
        load_encoder(spec)


@pytest.mark.parametrize("spec", ["hashing", "hashing:64", "glove:vectors.txt@sif"])
def test_encoders_that_are_not_models(spec):
    with pytest.raises(EncoderError):
        find_model(spec)


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(ModelNotFoundError, match=r"config.json"):
        find_model(str(tmp_path))


def test_invalid_weights_are_refused(folder):
    for device in (None, "cpu"):
        with pytest.raises(EncoderError):
            load_encoder(str(folder), device=device).encode_queries(["a text"])


def test_a_model_without_weights(folder):
    (folder / WEIGHTS).unlink()
    with pytest.raises(ModelNotFoundError):
        find_model(str(folder))


@pytest.mark.parametrize("content", ["{", "[1]", '{"a": 1}', '[{"type": "x"}]'])
def test_broken_modules(folder, content):
    (folder / "modules.json").write_text(content)
    with pytest.raises(EncoderError, match=r"modules.json"):
        find_model(str(folder))


def test_the_fingerprint_covers_what_determines_the_vectors(folder):
    before = find_model(str(folder)).fingerprint
    changes = {
        "weights": lambda: (folder / WEIGHTS).write_bytes(b"other weights"),
        "pooling": lambda: edit(folder / "1_Pooling" / "config.json", pooling_mode_cls_token=True),
        "length": lambda: edit(folder / "sentence_bert_config.json", max_seq_length=128),
        "prompts": lambda: edit(
            folder / "config_sentence_transformers.json", prompts={"query": "find: "}
        ),
        "vocabulary": lambda: (folder / "vocab.txt").write_text("[PAD]\n"),
    }
    seen = {before}
    for change in changes.values():
        change()
        seen.add(find_model(str(folder)).fingerprint)
    assert len(seen) == 1 + len(changes)


def test_the_fingerprint_ignores_other_changes(folder):
    before = find_model(str(folder)).fingerprint
    (folder / "README.md").write_text("another card")
    (folder / "train_script.py").write_text("pass")
    edit(folder / "config.json", transformers_version="9.9", _name_or_path="/elsewhere")
    edit(folder / "config_sentence_transformers.json", __version__={"pytorch": "9"})
    assert find_model(str(folder)).fingerprint == before


def test_the_current_fingerprint_equals_the_encoders(folder, minilm):
    """It is computed without loading the model."""
    assert current_fingerprint("minilm") == minilm.fingerprint
    assert current_fingerprint("hashing:32") == load_encoder("hashing:32").fingerprint
    before = current_fingerprint(str(folder))
    assert before == find_model(str(folder)).fingerprint
    (folder / "tokenizer.json").write_text("{}")
    assert current_fingerprint(str(folder)) != before
    shutil.rmtree(folder)
    with pytest.raises(ModelNotFoundError):
        current_fingerprint(str(folder))
