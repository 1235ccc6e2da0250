"""Tiny models with random weights in current and earlier layouts of sentence-transformers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    Dense,
    LayerNorm,
    Normalize,
    Pooling,
    Router,
    StaticEmbedding,
    Transformer,
)
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

WORDS = ["[UNK]", *"abcdef"]
WIDTH = 32  # of the tiny BERT


def bert(plain_bert):
    return [Transformer(str(plain_bert)), Pooling(WIDTH, "mean")]


def static():
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return StaticEmbedding(tokenizer, torch.randn(len(WORDS), 8).numpy())


#: Functions that build a model's modules from the folder of a tiny BERT, by layout.
MODULES = {
    "transformer": bert,
    "dense": lambda plain: [*bert(plain), Dense(WIDTH, 16), LayerNorm(16), Normalize()],
    "static": lambda plain: [static(), Normalize()],
    "router": lambda plain: [Router.for_query_document([static()], [static()])],
}
#: All layouts; the last three are variants of those above or of a plain BERT.
LAYOUTS = [*MODULES, "numbered transformer", "shards", "plain BERT"]


def write_model(layout: str, plain_bert: Path, folder: Path, *, safe: bool = True) -> Path:
    """Write a model with this layout into a new folder."""
    torch.manual_seed(0)
    if layout == "plain BERT":
        shutil.copytree(plain_bert, folder)
        return folder
    make = MODULES.get(layout, MODULES["dense"])
    prompts = {"query": "a : ", "document": "b : "}
    model = SentenceTransformer(modules=make(plain_bert), prompts=prompts, device="cpu")
    model.save(str(folder), safe_serialization=safe)
    if layout == "numbered transformer":
        number_transformer(folder)
    if layout == "shards":
        (folder / "model.safetensors").unlink()
        model[0].model.save_pretrained(folder, max_shard_size="20KB")
    return folder


def number_transformer(folder: Path) -> None:
    """Move the transformer into its own folder, as sentence-transformers did before 2.0."""
    own = folder / "0_Transformer"
    own.mkdir()
    kept = {"modules.json", "config_sentence_transformers.json", "README.md"}
    for file in folder.iterdir():
        if file.is_file() and file.name not in kept:
            file.rename(own / file.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = own.name
    (folder / "modules.json").write_text(json.dumps(modules))
