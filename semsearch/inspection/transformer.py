"""Inspects transformers: the vector of each token depends on the whole text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy

from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import EncoderError
from semsearch.inspection.records import (
    Inspection,
    PoolingCosines,
    Token,
    TokenKind,
    Vector,
    unit_rows,
)
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from tokenizers import Encoding


def read_by_transformer(encoder: TorchEncoder, text: str) -> Inspection:
    """Inspect a text, read as a document with the model's prompt for documents.

    Raises:
        EncoderError: the model is not a transformer, or finds no tokens in the text.
    """
    model = encoder.model
    if model.transformers_model is None:  # averaged word vectors
        raise EncoderError(f"model '{encoder.spec}' is not a transformer; inspect one like minilm")
    prompt = model.prompts.get("document") or ""
    tokenizer = whole_text_tokenizer(encoder.model.tokenizer)
    tokenizer.enable_truncation(model.get_max_seq_length())
    encoding = tokenizer.encode(prompt + text)
    kinds = _kinds(encoding, len(prompt))
    computed = _forward(encoder, encoding, kinds)
    mean = computed.tokens.mean(axis=0, keepdims=True)
    units = unit_rows(numpy.concatenate([computed.tokens, mean]))
    cosines: list[float | None] = [None] * len(units)
    if units.shape[1] == len(computed.sentence):
        cosines = (units @ computed.sentence).tolist()
    offsets = numpy.maximum(numpy.array(encoding.offsets) - len(prompt), 0).tolist()
    unknown_id = model.tokenizer.unk_token_id
    tokens = tuple(
        Token(piece, number, kind, attention, start, end, number != unknown_id, cosine)
        for piece, number, kind, attention, (start, end), cosine in zip(
            encoding.tokens,
            encoding.ids,
            kinds,
            encoding.attention_mask,
            offsets,
            cosines[:-1],
            strict=True,
        )
    )
    parts = [kinds, *(_kinds(part, len(prompt)) for part in encoding.overflowing)]
    return Inspection(
        spec=encoder.spec,
        text=text,
        tokens=tokens,
        text_tokens=sum(part.count(TokenKind.TEXT) for part in parts),
        read_to=max(end for _, end in offsets) if encoding.overflowing else len(text),
        max_tokens=encoder.max_document_tokens,
        pooling=_pooling(model),
        norm=computed.norm,
        vector=computed.sentence,
        token_vectors=computed.tokens,
        poolings=PoolingCosines(float(units[0] @ units[-1]), cosines[0], cosines[-1]),
    )


def _kinds(encoding: Encoding, prompt_length: int) -> list[TokenKind]:
    kinds = []
    for is_special, (_, end) in zip(encoding.special_tokens_mask, encoding.offsets, strict=True):
        if is_special:
            kinds.append(TokenKind.SPECIAL)
        else:
            kinds.append(TokenKind.PROMPT if end <= prompt_length > 0 else TokenKind.TEXT)
    return kinds


class _Computed(NamedTuple):
    """Token vectors, the unit sentence vector, and its length before normalisation."""

    tokens: Matrix
    sentence: Vector
    norm: float


def _forward(encoder: TorchEncoder, encoding: Encoding, kinds: list[TokenKind]) -> _Computed:
    """Run the modules of a model one after another, and keep intermediate results."""
    import torch

    if not encoding.ids:
        raise EncoderError(f"model '{encoder.spec}' finds no tokens in this text")
    model = encoder.model
    inputs = {
        "input_ids": encoding.ids,
        "attention_mask": encoding.attention_mask,
        "token_type_ids": encoding.type_ids,
    }
    features: dict[str, Any] = {
        name: torch.tensor([numbers], device=model.device)
        for name, numbers in inputs.items()
        if name in model.tokenizer.model_input_names
    }
    if TokenKind.PROMPT in kinds:  # for poolings that exclude the prompt
        features["prompt_length"] = len(kinds) - kinds[::-1].index(TokenKind.PROMPT)
    norm = 0.0
    with torch.inference_mode():
        for module in model:
            features = module(features)
            if "sentence_embedding" in features and type(module).__name__ != "Normalize":
                norm = float(features["sentence_embedding"].norm())
    if "token_embeddings" not in features:
        raise EncoderError(f"model '{encoder.spec}' has no token vectors")
    if not norm > 0:  # NaN fails this too
        raise EncoderError(f"model '{encoder.spec}' returned a vector of zeros or NaN")
    tokens = features["token_embeddings"][0].float().cpu().numpy()
    sentence = features["sentence_embedding"].float().cpu().numpy()
    return _Computed(tokens, unit_rows(sentence)[0], norm)


def _pooling(model: Any) -> str | None:
    """The pooling modes of a model."""
    for module in model:
        modes = getattr(module, "pooling_mode", None)
        if modes is not None:
            return modes if isinstance(modes, str) else "+".join(modes)
    return None
