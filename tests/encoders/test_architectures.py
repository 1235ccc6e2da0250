"""Models of every architecture run on OpenVINO, with the vectors of Sentence-Transformers.

Attention is rewritten as matrix products.
"""

from __future__ import annotations

import numpy
import openvino
import pytest
import torch
import transformers
from openvino import opset13 as op
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from semsearch.encoders import load_encoder
from semsearch.encoders.openvino.conversion import MASK, write_out_attention
from semsearch.encoders.openvino.models import OpenVINOEncoder

WORDS = ["<pad>", "<unk>", "<s>", "</s>", *"abcdefghijklmnopqrstuvwxyz"]
TEXTS = ["a", "b c", "x y z " * 3, "", "p o i " * 12, "a b c d e f g h " * 6]
TEXTS += ["e r " * 40, "z " * 99]

SIZES = {
    "vocab_size": len(WORDS),
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 70,
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
SMALL = SIZES | {"embedding_size": 16}
GROUPED = SIZES | {"num_key_value_heads": 2}  # decoders share keys among heads
RELATIVE = {"relative_attention": True, "position_buckets": 16, "position_biased_input": False}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
DISTIL = {"dim": 32, "n_layers": 1, "n_heads": 4, "hidden_dim": 64}
#: Texts longer than the window of attention, in one of two layers.
WINDOWS = {"num_hidden_layers": 2, "sliding_window": 16, "head_dim": 8}
LOCAL = {"num_hidden_layers": 2, "local_attention": 16, "global_attn_every_n_layers": 2}

#: Name of the model, and its configuration.
ENCODERS = {
    "Bert": SIZES,
    "Roberta": SIZES,
    "XLMRoberta": SIZES,
    "MPNet": SIZES,
    "DistilBert": DISTIL | {"vocab_size": len(WORDS), "max_position_embeddings": 70},
    "Electra": SMALL,
    "Albert": SMALL,
    "DebertaV2": SIZES | RELATIVE | {"pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm"},
    "ModernBert": SIZES | LOCAL | {"cls_token_id": 2, "sep_token_id": 3},
    "T5": T5 | {"vocab_size": len(WORDS), "pad_token_id": 0, "eos_token_id": 3},
}
DECODERS = {
    "Qwen2": GROUPED,
    "Qwen3": GROUPED | {"head_dim": 8},
    "Mistral": GROUPED | WINDOWS,
    "Gemma3Text": GROUPED | WINDOWS | {"layer_types": ["sliding_attention", "full_attention"]},
}


def write_tokenizer(folder, limit, *, is_decoder):
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, "<unk>"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="$A </s>" if is_decoder else "<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="</s>",
        model_max_length=limit,
        padding_side="left" if is_decoder else "right",
    ).save_pretrained(folder)


@pytest.mark.parametrize("name", [*ENCODERS, *DECODERS])
def test_vectors_are_those_of_torch(name, tmp_path, monkeypatch):
    is_decoder = name in DECODERS
    kind = "T5EncoderModel" if name == "T5" else f"{name}Model"
    config = getattr(transformers, f"{name}Config")(**(ENCODERS | DECODERS)[name])
    torch.manual_seed(0)
    network = getattr(transformers, kind)(config).eval()
    with torch.no_grad():
        for weights in network.parameters():
            weights *= 4 if weights.ndim > 1 else 1  # so that texts differ
    network.save_pretrained(tmp_path / "plain")
    limit = None if name == "T5" else 64  # 512 if a model has no limit
    write_tokenizer(tmp_path / "plain", limit, is_decoder=is_decoder)
    pooling = Pooling(32, "lasttoken" if is_decoder else "mean")
    modules = [Transformer(str(tmp_path / "plain")), pooling]
    model = SentenceTransformer(modules=modules, device="cpu")
    model.save(str(tmp_path / "model"))
    expected = model.encode(TEXTS, normalize_embeddings=True)
    assert (expected @ expected.T).min() < 0.9

    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))
    encoder = load_encoder(str(tmp_path / "model"), precision="fp32")
    assert isinstance(encoder, OpenVINOEncoder)
    (converted,) = tmp_path.glob("cache/encoder-*/model.xml")
    assert "ScaledDotProductAttention" not in converted.read_text()  # but matrix products
    assert encoder.facts.max_tokens == (limit or 512) - (1 if is_decoder else 2)
    for vectors in (
        encoder.encode_documents(TEXTS),
        numpy.concatenate([encoder.encode_queries([text]) for text in TEXTS]),
        load_encoder(str(tmp_path / "model"), device="cpu").encode_documents(TEXTS),
    ):
        assert (vectors * expected).sum(axis=1).min() >= 0.9999


BIAS = numpy.arange(15, dtype=numpy.float32).reshape(1, 3, 5, 1)  # for each head and token


@pytest.mark.parametrize(
    ("others", "causal"), [([], False), ([], True), ([BIAS, numpy.float32(0.3)], False)]
)
def test_attention_that_the_architectures_lack(others, causal):
    """Without a mask; causal without one, which is kept; with a bias for each head and a scale."""
    mask = op.parameter([-1, -1], numpy.int64, name=MASK)
    mask.output(0).set_names({MASK})
    tokens = op.parameter([2, 5, 3, 8], numpy.float32)
    heads = op.transpose(tokens, [0, 2, 1, 3])  # not of queries alone: their factor comes later
    inputs = [heads, op.multiply(heads, numpy.float32(3)), op.sin(heads)]
    inputs += [op.constant(other) for other in others]
    attended = op.scaled_dot_product_attention(*inputs, causal=causal)
    model = openvino.Model([op.result(attended)], [tokens, mask], "attention")
    values = numpy.random.default_rng(3).normal(size=(2, 5, 3, 8)).astype(numpy.float32)

    def output():
        run = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        return numpy.array(run([values, numpy.ones((2, 5), numpy.int64)])[0])

    expected = output()
    write_out_attention(model, 5)
    kinds = [node.get_type_name() for node in model.get_ordered_ops()]
    assert ("ScaledDotProductAttention" in kinds) == causal
    numpy.testing.assert_allclose(output(), expected, atol=1e-5)
