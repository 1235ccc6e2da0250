"""Pickled weights are refused wherever they would be read, and nothing in them runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from layouts import MODULES, number_transformer, write_model

from semsearch.encoders import load_encoder, load_reranker
from semsearch.errors import EncoderError, UnsafeModelError


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.fixture(autouse=True)
def trace(tmp_path):
    """The file that an unpickled trap creates; no test may."""
    yield tmp_path / "trace"
    assert not (tmp_path / "trace").exists()


@pytest.fixture
def trap(trace):
    """Replaces a file of weights by a trap; unpickling it creates the trace."""

    def put(folder, name="pytorch_model.bin", old="model.safetensors"):
        torch.save({"weights": Trap(trace)}, folder / name)
        if old:
            (folder / old).unlink()
        return str(folder)

    return put


def refused(folder, error=UnsafeModelError):
    for device in (None, "cpu"):
        with pytest.raises(error):
            load_encoder(str(folder), device=device).encode_documents(["a"])


@pytest.mark.parametrize("layout", MODULES)
def test_models_saved_as_pickles(layout, plain_bert, tmp_path):
    """By sentence-transformers; weights that it no longer pickles are pickled as it once did."""
    folder = write_model(layout, plain_bert, tmp_path / "model", safe=False)
    for file in folder.rglob("model.safetensors"):
        torch.save({}, file.with_name("pytorch_model.bin"))
        file.unlink()
    refused(folder)


def test_unread_pickles_are_ignored(plain_bert, trap, tmp_path):
    folder = write_model("dense", plain_bert, tmp_path / "model")
    for place in (folder, folder / "2_Dense"):
        trap(place, old=None)
        trap(place, "optimizer.pt", old=None)
    (folder / "checkpoint-5").mkdir()
    trap(folder / "checkpoint-5", old=None)
    load_encoder(str(folder), device="cpu").encode_documents(["a"])


def test_pickled_shards(plain_bert, trap, tmp_path):
    """The index of shards is one of safetensors, but names another file."""
    folder = write_model("shards", plain_bert, tmp_path / "model")
    index = folder / "model.safetensors.index.json"
    shards = json.loads(index.read_text())
    names = dict.fromkeys(shards["weight_map"], "shard.bin")
    index.write_text(json.dumps(shards | {"weight_map": names}))
    trap(folder, "shard.bin", old=None)
    refused(folder, EncoderError)


def test_unknown_module_types(plain_bert, tmp_path):
    folder = write_model("dense", plain_bert, tmp_path / "model")
    modules = json.loads((folder / "modules.json").read_text())
    for kind in (
        "os.system",
        "sentence_transformers_evil.modules.Module",
        "sentence_transformers.base.modules.module.torch",
        "sentence_transformers.util.import_from_string",
    ):
        modules[2]["type"] = kind
        (folder / "modules.json").write_text(json.dumps(modules))
        refused(folder)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl"])
def test_a_transformer_in_its_own_folder(name, plain_bert, trap, tmp_path):
    folder = write_model("dense", plain_bert, tmp_path / "model")
    number_transformer(folder)
    trap(folder / "0_Transformer", name)
    refused(folder)


@pytest.mark.parametrize("device", [None, "cpu"])
def test_rerankers(classifier, trap, device):
    with pytest.raises(UnsafeModelError):
        load_reranker(trap(classifier()), device).score("a", ["b"])
