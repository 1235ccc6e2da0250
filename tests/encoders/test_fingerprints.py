"""Fingerprints cover the files that determine the vectors, and no others."""

from __future__ import annotations

import json
import shutil

import pytest
from layouts import LAYOUTS, write_model

from semsearch.encoders import current_fingerprint, load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.errors import ModelNotFoundError


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
