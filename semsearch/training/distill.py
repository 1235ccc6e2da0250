"""Distillation: a faster student that approximates its teacher's vectors.

It averages word vectors, as that of model2vec (Tulkens & van Dongen 2024): the teacher's vector of
each word piece alone, weighted by its rarity. (`StaticEmbedding.from_distillation` needs model2vec,
which needs an older transformers.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy
from numpy.random import default_rng

from semsearch.encoders import load_encoder
from semsearch.encoders.model_folder import ModelFolder
from semsearch.encoders.torch_models import TorchEncoder, whole_text_tokenizer
from semsearch.errors import EncoderError
from semsearch.protocols import Matrix
from semsearch.records import Document
from semsearch.training.data import found_sts
from semsearch.training.encoder import plain_encode, scored_encoder
from semsearch.training.examples import Examples, Kind, Notify, distinct_documents, sentences, split
from semsearch.training.measures import cosine_to_teacher
from semsearch.training.run import Job, Task
from semsearch.training.stages import Recipe, Settings, Stage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from semsearch.training.trainer import Trainee

#: Maximum number of training texts, which the teacher encodes.
MAX_TEXTS = 200_000
#: Frequency of a word with weight one half (Arora et al. 2017, smooth inverse frequency).
HALF_WEIGHT = 1e-4
#: Ridge of the least squares that fit a static student, relative to the mean of the diagonal.
RIDGE = 1e-3
LOSS = "cosine to the teacher's vector"


@dataclass(frozen=True)
class Distillation(Task):
    """Distil an encoder into averaged word vectors.

    Args:
        documents: the corpus.
        data_name: name of the corpus in messages.
    """

    documents: Iterable[Document]
    data_name: str

    name = "distill"
    recipe = Recipe(batch_size=64, learning_rate=3e-3)  # word vectors alone learn fast

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
        return Job([stage], _trainee, finish)

    def _examples(self, texts: list[str], part: str) -> Examples:
        rows = list(range(len(texts)))
        return Examples(f"{self.data_name}{part}", Kind.TEXTS, (texts,), rows)


def _trainee(folder: Path, stage: Stage) -> Trainee:
    """A new student, with the teacher's vectors as targets."""
    from semsearch.training.trainer import TeacherLoss, text_trainee

    training, development, recipe, _ = stage
    teacher = TorchEncoder(ModelFolder(str(folder), folder))
    if teacher.model.transformers_model is None:
        raise EncoderError("the teacher averages word vectors already; distil a transformer")
    (texts,), (held,) = training.texts, development.texts if development else ([],)
    # The teacher is not trained, so it may use its fastest runtime.
    vectors = load_encoder(str(folder), local_files_only=True).encode_documents(texts + held)
    wanted, wanted_held = vectors[: len(texts)], vectors[len(texts) :]
    student = static_student(teacher, texts, wanted)
    score = None
    if development is not None:
        score = partial(cosine_to_teacher, plain_encode(student), development, wanted_held)
    return text_trainee(student, TeacherLoss(student, wanted), training, recipe, score)


def static_student(
    teacher: TorchEncoder, texts: Sequence[str], wanted: Matrix
) -> SentenceTransformer:
    """A model that averages the teacher's vectors of word pieces, weighted by rarity in the texts.

    The vectors of pieces are then mapped by the linear map that brings those of the texts nearest
    to the teacher's: averaging is linear, so this is a least-squares problem.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    known, tokenizer = teacher.model.tokenizer, whole_text_tokenizer(teacher.model.tokenizer)
    tokenizer.enable_truncation(teacher.facts.max_tokens)
    counts = numpy.ones(tokenizer.get_vocab_size())
    for encoding in tokenizer.encode_batch_fast(list(texts), add_special_tokens=False):
        numpy.add.at(counts, encoding.ids, 1)
    counts[known.all_special_ids] = 0
    weights = HALF_WEIGHT / (HALF_WEIGHT + counts / counts.sum()) * (counts > 0)
    pieces = [tokenizer.decode([n]).removeprefix("##") for n in range(len(counts))]
    vectors = teacher.encode_documents(pieces) * weights[:, None]
    student = SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, vectors.astype(numpy.float32))], device="cpu"
    )
    averages = student.encode(list(texts), show_progress_bar=False)
    products = averages.T @ averages
    products += numpy.eye(len(products)) * RIDGE * products.diagonal().mean()
    vectors = vectors @ numpy.linalg.solve(products, averages.T @ wanted)
    return SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, vectors.astype(numpy.float32))], device="cpu"
    )
