"""Plain BERTs with each pooling, against transformers and a calculation by hand."""

from __future__ import annotations

import shutil

import numpy
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertModel, BertTokenizerFast

from semsearch.encoders import load_encoder
from semsearch.encoders.openvino.models import OpenVINOEncoder
from semsearch.encoders.specs import Pooling
from semsearch.errors import EncoderError

TEXTS = ["a b c", "d", "a a a a e f", "f e d c b a a b c"]
POOLINGS = [pooling.value for pooling in Pooling]


def by_hand(folder, pooling, text):
    """The unit vector of one text alone, without padding: Reimers & Gurevych 2019, section 3."""
    inputs = BertTokenizerFast.from_pretrained(folder)(text, return_tensors="pt")
    with torch.no_grad():
        output = BertModel.from_pretrained(folder).eval()(**inputs)
    tokens = output.last_hidden_state[0].numpy()
    vector = {
        "mean": tokens.mean(axis=0),
        "cls": tokens[0],
        "max": tokens.max(axis=0),
        "pooler": output.pooler_output[0].numpy(),
    }[pooling]
    return vector / numpy.linalg.norm(vector)


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_never_changes_a_vector(plain_bert, pooling, device):
    encoder = load_encoder(f"{plain_bert}@{pooling}", device=device, precision="fp32")
    assert isinstance(encoder, OpenVINOEncoder) == (device is None)
    expected = [by_hand(plain_bert, pooling, text) for text in TEXTS]
    padded = encoder.encode_documents(TEXTS * 4)[: len(TEXTS)]
    numpy.testing.assert_allclose(padded, expected, atol=1e-5)
    alone = [encoder.encode_queries([text])[0] for text in TEXTS]
    numpy.testing.assert_allclose(alone, expected, atol=1e-5)


def test_each_pooling_is_another_encoder(plain_bert):
    encoders = [load_encoder(f"{plain_bert}@{pooling}", device="cpu") for pooling in POOLINGS]
    assert len({encoder.fingerprint for encoder in encoders}) == len(POOLINGS)
    for encoder, pooling in zip(encoders, POOLINGS, strict=True):
        assert encoder.spec == f"{plain_bert}@{pooling}"


def test_an_untrained_pooler_is_refused(plain_bert, tmp_path):
    for file in plain_bert.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "pooler" not in name}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(EncoderError):
        load_encoder(f"{tmp_path}@pooler")
    (tmp_path / "checkpoint-5").mkdir()  # another model's weights, which are not read
    shutil.copy(plain_bert / "model.safetensors", tmp_path / "checkpoint-5")
    with pytest.raises(EncoderError):
        load_encoder(f"{tmp_path}@pooler")
    assert load_encoder(f"{tmp_path}@cls").dimension == 32
