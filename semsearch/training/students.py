"""Untrained students: the teacher with fewer layers, or averaged word vectors alone.

The static student is that of model2vec (Tulkens & van Dongen 2024): the teacher's vector of each
word piece alone, weighted by its rarity. (The package itself needs an older transformers.)
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import ArgumentError, EncoderError
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

#: Word pieces per batch of the teacher.
PIECES_AT_ONCE = 1024
#: Frequency of a word with weight one half (Arora et al. 2017, smooth inverse frequency).
HALF_WEIGHT = 1e-4
#: Ridge of the least squares that fit a static student, relative to the mean of the diagonal.
RIDGE = 1e-3


def shallow_student(teacher: SentenceTransformer, layers: int) -> SentenceTransformer:
    """A copy of the teacher with this many of its layers, evenly spaced from first to last.

    Raises:
        ArgumentError: the teacher does not have more layers.
        EncoderError: the teacher is not built of layers like BERT.
    """
    from torch.nn import ModuleList

    _check_transformer(teacher)
    student = copy.deepcopy(teacher)
    encoder = getattr(getattr(student[0], "auto_model", None), "encoder", None)
    blocks = getattr(encoder, "layer", None)
    if encoder is None or not isinstance(blocks, ModuleList):
        raise EncoderError("this model is not built of layers like BERT; use --static")
    if not 1 <= layers < len(blocks):
        raise ArgumentError(f"layers must be from 1 to {len(blocks) - 1}, not {layers}")
    kept = numpy.linspace(0, len(blocks) - 1, layers).round().astype(int)
    encoder.layer = ModuleList(blocks[place] for place in kept)
    config: Any = student[0].auto_model.config
    config.num_hidden_layers = layers
    return student


def check_static(teacher: TorchEncoder, dimension: int | None) -> None:
    """Refuse a static student that this teacher cannot have, before the work.

    Raises:
        ArgumentError: the teacher's vectors have fewer dimensions.
        EncoderError: the teacher is not a transformer.
    """
    _check_transformer(teacher.model)
    if dimension is not None and not 1 <= dimension <= teacher.dimension:
        raise ArgumentError(f"dimension must be from 1 to {teacher.dimension}, not {dimension}")


def static_student(
    teacher: TorchEncoder, dimension: int | None, counts: NDArray[numpy.int64] | None = None
) -> SentenceTransformer:
    """A model that averages word vectors, with the teacher's word pieces.

    Args:
        teacher: a model with a tokenizer of word pieces.
        dimension: number of principal components to keep; None leaves the vectors as they are.
        counts: occurrences of each piece in a corpus; None takes the order of the vocabulary as
            that of frequency, by Zipf's law.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    tokenizer.enable_truncation(teacher.facts.max_tokens)
    vectors, is_word = _piece_vectors(teacher)
    if dimension is not None:
        centred = vectors - vectors[is_word].mean(axis=0)
        _, directions = numpy.linalg.eigh(centred[is_word].T @ centred[is_word])
        vectors = centred @ directions[:, ::-1][:, :dimension]
    frequencies = 1 / (1.0 + is_word.cumsum()) if counts is None else counts + 1.0
    frequencies = frequencies * is_word
    weights = is_word * HALF_WEIGHT / (HALF_WEIGHT + frequencies / frequencies.sum())
    vectors = (vectors * weights[:, None]).astype(numpy.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, vectors)], device="cpu")


def fitted_static(
    teacher: TorchEncoder, texts: Sequence[str], wanted: Matrix, dimension: int | None
) -> tuple[SentenceTransformer, Matrix]:
    """A static student fitted to its teacher by least squares, and the targets of its training.

    Averaging is linear, so the best linear map of all word vectors is a least-squares solution.

    Args:
        teacher: a model with a tokenizer of word pieces.
        texts: a corpus.
        wanted: the teacher's vectors of these texts, followed by those of others.
        dimension: number of principal components to keep; None leaves the vectors as they are.

    Returns:
        The student, and the wanted vectors in its dimension.
    """
    import torch

    if dimension is not None:
        _, directions = numpy.linalg.eigh(wanted.T @ wanted)
        wanted = wanted @ directions[:, ::-1][:, :dimension]
    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    counts = numpy.zeros(tokenizer.get_vocab_size(), numpy.int64)
    for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
        numpy.add.at(counts, encoding.ids, 1)
    student = static_student(teacher, None, counts)
    averages = student.encode(list(texts), show_progress_bar=False)
    products = averages.T @ averages
    products += numpy.eye(len(products)) * RIDGE * products.diagonal().mean()
    turn = numpy.linalg.solve(products, averages.T @ wanted[: len(texts)])
    weights = student[0].embedding.weight
    turned = weights.detach().numpy() @ turn
    student[0].embedding.weight = torch.nn.Parameter(torch.from_numpy(turned).float())
    student[0].embedding_dim = student[0].embedding.embedding_dim = turned.shape[1]
    return student, numpy.ascontiguousarray(wanted, numpy.float32)


def _check_transformer(teacher: SentenceTransformer) -> None:
    if teacher.transformers_model is None:
        raise EncoderError("the teacher averages word vectors already; distil a transformer")


def _piece_vectors(teacher: TorchEncoder) -> tuple[Matrix, NDArray[numpy.bool_]]:
    """The teacher's vector of each piece alone, and which pieces are words; zeros for others."""
    import torch

    model = teacher.model
    known = model.tokenizer
    special = set(known.all_special_ids)
    names = known.convert_ids_to_tokens(range(len(known)))
    is_word = numpy.array(
        [
            place not in special and not name.startswith("[unused")
            for place, name in enumerate(names)
        ]
    )
    framed = whole_text_tokenizer(teacher.model.tokenizer).encode("a")
    first, last = framed.special_tokens_mask.index(0), framed.special_tokens_mask[::-1].index(0)
    before, after = framed.ids[:first], framed.ids[len(framed.ids) - last :]
    vectors = numpy.zeros((len(names), teacher.dimension), numpy.float32)
    pieces = numpy.flatnonzero(is_word)
    with torch.inference_mode():
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            some = pieces[start : start + PIECES_AT_ONCE]
            rows = [[*before, int(piece), *after] for piece in some]
            ids = torch.tensor(rows, device=model.device)
            features: Any = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            for module in model:
                if type(module).__name__ != "Normalize":  # the length holds a word's weight
                    features = module(features)
            found = features["sentence_embedding"][:, : teacher.dimension]
            vectors[some] = found.float().cpu().numpy()
    return vectors, is_word
