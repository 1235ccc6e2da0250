"""Distillation: a faster student that approximates its teacher's vectors.

A shallow student is the teacher with fewer layers. A static student averages word vectors, as that
of model2vec (Tulkens & van Dongen 2024): the teacher's vector of each word piece alone, weighted by
its rarity. (`StaticEmbedding.from_distillation` needs model2vec, which needs an older
transformers.)
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
from numpy.random import default_rng
from numpy.typing import NDArray

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import ArgumentError, EncoderError
from semsearch.protocols import Matrix
from semsearch.records import Document
from semsearch.training.data import found_sts
from semsearch.training.encoder import disable_attention_dropout, plain_encode, scored_encoder
from semsearch.training.examples import Examples, Kind, Notify, distinct_documents, sentences, split
from semsearch.training.run import Job, Task
from semsearch.training.stages import Recipe, Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

    from semsearch.training.trainer import Trainee

STATIC_LEARNING_RATE, SHALLOW_LEARNING_RATE = 3e-3, 1e-4
#: Maximum number of training texts, which the teacher encodes.
MAX_TEXTS = 200_000
#: Word pieces per batch of the teacher.
PIECES_AT_ONCE = 1024
#: Frequency of a word with weight one half (Arora et al. 2017, smooth inverse frequency).
HALF_WEIGHT = 1e-4
#: Ridge of the least squares that fit a static student, relative to the mean of the diagonal.
RIDGE = 1e-3
LOSS = "cosine to the teacher's vector"


@dataclass(frozen=True)
class Distillation(Task):
    """Distil an encoder into a faster student.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
        layers: number of the teacher's layers to keep; None makes a static student.
    """

    documents: Iterable[Document]
    data_name: str
    layers: int | None = None

    name = "distill"

    def recipe_for(self, base: str | None) -> Recipe:
        """A high learning rate for word vectors alone."""
        del base
        rate = STATIC_LEARNING_RATE if self.layers is None else SHALLOW_LEARNING_RATE
        return Recipe(batch_size=64, learning_rate=rate)

    def prepare(self, settings: Settings, notify: Notify) -> Job:
        """One stage on documents and their sentences, as passages are long and queries short."""
        recipe = settings.recipe.for_kind(Kind.TEXTS)
        found = distinct_documents(self.documents)
        parts = split(found, recipe.seed, "different documents in this corpus")
        trained, held = (
            dict.fromkeys(text for one in part for text in (one.text, *sentences(one.text)))
            for part in parts
        )
        most = min(MAX_TEXTS, recipe.steps * recipe.batch_size if recipe.steps else MAX_TEXTS)
        texts = list(trained)
        order = default_rng(recipe.seed).permutation(len(texts))[:most]
        unseen = self._examples([text for text in held if text not in trained], " (held out)")
        training = self._examples([texts[place] for place in order], "")
        stage = Stage(training, unseen if len(unseen) else None, recipe, LOSS)
        tests = found_sts(["stsbenchmark"], "test", notify)
        finish = partial(scored_encoder, tests, stage._replace(development=None))
        return Job([stage], self._trainee, finish, {"layers": self.layers})

    def _examples(self, texts: list[str], part: str) -> Examples:
        rows = list(range(len(texts)))
        return Examples(f"{self.data_name}{part}", Kind.TEXTS, (texts,), rows)

    def _trainee(self, folder: Path, stage: Stage) -> Trainee:
        """A new student, with the teacher's vectors as targets."""
        from semsearch.training.losses import TeacherLoss
        from semsearch.training.trainer import text_trainee

        training, development, recipe, _ = stage
        teacher = TorchEncoder(ModelFolder(str(folder), folder))
        if teacher.model.transformers_model is None:
            raise EncoderError("the teacher averages word vectors already; distil a transformer")
        if self.layers is not None:
            student = shallow_student(teacher.model, self.layers)
            disable_attention_dropout(student)
        (texts,), (held,) = training.texts, development.texts if development else ([],)
        # The teacher is not trained, so it may use its fastest runtime.
        wanted = load_encoder(str(folder), local_files_only=True).encode_documents(texts + held)
        if self.layers is None:
            student = fitted_static(teacher, texts, wanted[: len(texts)])
        prompt = student.prompts.get("document") or ""
        prompted, prompted_held = ([prompt + text for text in some] for some in (texts, held))
        loss = TeacherLoss(student, wanted[: len(texts)])
        score = partial(_mean_cosine, student, prompted_held, wanted[len(texts) :])
        training = replace(training, texts=(prompted,))
        return text_trainee(student, loss, training, recipe, score if held else None)


def _mean_cosine(student: SentenceTransformer, texts: list[str], wanted: Matrix) -> float:
    lengths = numpy.linalg.norm(wanted, axis=1)
    vectors = plain_encode(student)(texts)
    return 100 * float(((vectors * wanted).sum(axis=1) / lengths).mean())


def shallow_student(teacher: SentenceTransformer, layers: int) -> SentenceTransformer:
    """A copy of the teacher with this many of its layers, evenly spaced from first to last.

    Raises:
        ArgumentError: the teacher does not have more layers.
        EncoderError: the teacher is not built of layers like BERT.
    """
    from torch.nn import ModuleList

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


def static_student(
    teacher: TorchEncoder, tokenizer: Tokenizer, counts: NDArray[numpy.int64]
) -> SentenceTransformer:
    """A model that averages the teacher's vectors of word pieces, weighted by rarity.

    Args:
        teacher: a model with a tokenizer of word pieces.
        tokenizer: that tokenizer.
        counts: occurrences of each piece in a corpus.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    tokenizer.enable_truncation(teacher.facts.max_tokens)
    vectors, is_word = _piece_vectors(teacher)
    frequencies = (counts + 1.0) * is_word
    weights = is_word * HALF_WEIGHT / (HALF_WEIGHT + frequencies / frequencies.sum())
    vectors = (vectors * weights[:, None]).astype(numpy.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, vectors)], device="cpu")


def fitted_static(
    teacher: TorchEncoder, texts: Sequence[str], wanted: Matrix
) -> SentenceTransformer:
    """A static student fitted to its teacher by least squares.

    Averaging is linear, so the best linear map of all word vectors is a least-squares solution.

    Args:
        teacher: a model with a tokenizer of word pieces.
        texts: a corpus.
        wanted: the teacher's vectors of these texts.
    """
    import torch

    tokenizer = whole_text_tokenizer(teacher.model.tokenizer)
    counts = numpy.zeros(tokenizer.get_vocab_size(), numpy.int64)
    for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
        numpy.add.at(counts, encoding.ids, 1)
    student = static_student(teacher, tokenizer, counts)
    averages = student.encode(list(texts), show_progress_bar=False)
    products = averages.T @ averages
    products += numpy.eye(len(products)) * RIDGE * products.diagonal().mean()
    turn = numpy.linalg.solve(products, averages.T @ wanted)
    weights = student[0].embedding.weight
    with torch.no_grad():
        weights.copy_(torch.from_numpy(weights.numpy() @ turn))
    return student


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
