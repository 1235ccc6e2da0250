"""What several tests need: the real data, the real encoder, an encoder that knows no model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from semsearch.encoders import load_encoder

os.environ["HF_HUB_OFFLINE"] = "1"  # tests run without a network, and say so to the hub's client


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory):
    """A cache of converted models for this run alone, for its subprocesses too."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["SEMSEARCH_CACHE"] = str(folder)
    return folder


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of published data sets that SEMSEARCH_DATA names."""
    folder = os.environ.get("SEMSEARCH_DATA")
    if folder is None:
        if os.environ.get("SEMSEARCH_DATA_REQUIRED"):
            pytest.fail("SEMSEARCH_DATA_REQUIRED is set, but not SEMSEARCH_DATA")
        pytest.skip("SEMSEARCH_DATA names no folder of published data sets")
    return Path(folder).resolve(strict=True)


@pytest.fixture(scope="session")
def minilm(cache):
    """The bundled encoder as users have it, loaded once."""
    return load_encoder("minilm")


@pytest.fixture(scope="session")
def write_bert(tmp_path_factory):
    """Makes a folder with a tiny BERT of random weights that knows some words."""

    def write(words, seed=0, **sizes):
        import torch
        from transformers import BertConfig, BertModel, BertTokenizerFast

        folder = tmp_path_factory.mktemp("bert")
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
        sizes = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
            "max_position_embeddings": 32,
        } | sizes
        torch.manual_seed(seed)
        config = BertConfig(vocab_size=len(words), **sizes)
        BertModel(config).eval().save_pretrained(folder)
        vocabulary = {word: place for place, word in enumerate(words)}
        BertTokenizerFast(vocab=vocabulary).save_pretrained(folder)
        return folder

    return write


@pytest.fixture
def hashing():
    """An encoder without a model."""
    return load_encoder("hashing")
