"""Any change to a model's files changes its fingerprint or leaves its vectors unchanged."""

from __future__ import annotations

import json
import shutil

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from layouts import LAYOUTS, write_model
from safetensors.numpy import load_file, save_file

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import find_model
from semsearch.errors import EncoderError

TEXTS = ["a b c", "d e f a", "A b zzz", "c " * 40, "e"]


@pytest.fixture(scope="module", params=LAYOUTS)
def model(request, plain_bert, tmp_path_factory):
    """A model with its fingerprint and its vectors."""
    folder = write_model(request.param, plain_bert, tmp_path_factory.mktemp("model") / "model")
    (folder / "README.md").write_text("a card")
    return folder, fingerprint(folder), vectors(folder)


def fingerprint(folder):
    return find_model(str(folder)).fingerprint


def vectors(folder):
    encoder = load_encoder(str(folder), device="cpu", precision="fp32")
    return numpy.concatenate([encoder.encode_queries(TEXTS), encoder.encode_documents(TEXTS)])


def changed_json(draw, value):
    """A JSON value with a change somewhere in it."""
    if isinstance(value, dict) and value:
        key = draw(some.sampled_from(sorted(value)))
        if draw(some.integers(0, 3)) == 0:
            return {name: value[name] for name in value if name != key}
        return value | {key: changed_json(draw, value[key])}
    if isinstance(value, list) and value:
        place = draw(some.integers(0, len(value) - 1))
        if draw(some.booleans()):
            return [*value[:place], *value[place + 1 :]]
        return [*value[:place], changed_json(draw, value[place]), *value[place + 1 :]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + draw(some.sampled_from([-1, 1, 16]))
    if isinstance(value, str):
        return draw(some.sampled_from([f"{value}x", value[:-1], value.upper(), "a"]))
    return draw(some.sampled_from([1, "a", True, [], {}]))


def change(draw, file):
    """Change a file so that it may still be readable."""
    if file.suffix == ".safetensors":
        tensors = load_file(file)
        name = draw(some.sampled_from(sorted(tensors)))
        flat = tensors[name].reshape(-1).copy()
        flat[draw(some.integers(0, flat.size - 1))] += 1
        save_file(tensors | {name: flat.reshape(tensors[name].shape)}, file, {"format": "pt"})
    elif file.suffix == ".json":
        file.write_text(json.dumps(changed_json(draw, json.loads(file.read_text()))))
    else:
        lines = file.read_text().split("\n")
        first, second = (draw(some.integers(0, len(lines) - 1)) for _ in range(2))
        lines[first], lines[second] = lines[second], f"{lines[first]}x"
        file.write_text("\n".join(lines))


@settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=some.data())
def test_changes_of_a_file_are_detected_or_harmless(model, tmp_path, data):
    folder, before, expected = model
    copy = tmp_path / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    file = data.draw(some.sampled_from(files))
    if data.draw(some.integers(0, 9)) == 0:
        file.unlink()
    else:
        change(data.draw, file)
    try:
        if fingerprint(copy) != before:
            return
        found = vectors(copy)
    except EncoderError:  # refused or not loadable: no vectors
        return
    numpy.testing.assert_array_equal(found, expected)


def test_unknown_files_change_the_fingerprint(plain_bert, tmp_path):
    shutil.copytree(plain_bert, tmp_path / "copy")
    seen = [fingerprint(tmp_path / "copy")]
    for name in ("vocab.txt", "model.spm", "bpe.codes"):
        (tmp_path / "copy" / name).write_text("a\nb\nc\n")
        seen.append(fingerprint(tmp_path / "copy"))
    # A word may be named like a key that is ignored elsewhere.
    for number in (1, 2):
        (tmp_path / "copy" / "vocab.json").write_text(json.dumps({"name_or_path": number}))
        seen.append(fingerprint(tmp_path / "copy"))
    assert len(set(seen)) == 6


def test_linked_modules_are_fingerprinted(plain_bert, tmp_path):
    folder = write_model("dense", plain_bert, tmp_path / "model")
    before = fingerprint(folder)
    (folder / "2_Dense").rename(tmp_path / "elsewhere")
    (folder / "2_Dense").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert fingerprint(folder) == before
    tensors = load_file(tmp_path / "elsewhere" / "model.safetensors")
    changed = {name: tensor + 1 for name, tensor in tensors.items()}
    save_file(changed, tmp_path / "elsewhere" / "model.safetensors")
    assert fingerprint(folder) != before


def test_the_bundled_models_fingerprint_is_stable():
    """The fingerprint of all-MiniLM-L6-v2 in released indexes."""
    assert find_model("minilm").fingerprint == (
        "a8570d3ec9a900d73c890bb55c36bed54cac491cb236744f11ab3724b34909a3"
    )
