"""MTEB with our encoders gives the same score as our `eval`, on a task defined here."""

from __future__ import annotations

import random

import pytest
from frameworks import needs

from semsearch import load_encoder
from semsearch.evaluation import evaluate_retrieval, load_rankers
from semsearch.evaluation.datasets.records import RetrievalSet

needs("mteb")

import mteb  # noqa: E402
from datasets import Dataset  # noqa: E402
from mteb.abstasks.retrieval import AbsTaskRetrieval  # noqa: E402
from mteb.abstasks.task_metadata import TaskMetadata  # noqa: E402
from mteb.models import EncoderProtocol  # noqa: E402
from mteb.types import PromptType  # noqa: E402

from semsearch.integrations.mteb import SemsearchEncoder  # noqa: E402


def sentences(n, seed):
    """Texts so long that no two cosines are equal, since ties are broken differently."""
    drawn = random.Random(seed)
    words = [f"word{number}" for number in range(50)]
    return [" ".join(drawn.choices(words, k=drawn.randint(20, 40))) for _ in range(n)]


CORPUS = {f"d{n}": text for n, text in enumerate(sentences(60, 3))}
QUERIES = {f"q{n}": text for n, text in enumerate(sentences(12, 4))}
QRELS = {f"q{n}": {f"d{n}": 1, f"d{2 * n + 7}": 1, f"d{n + 30}": 0} for n in range(12)}


class WordSearch(AbsTaskRetrieval):
    metadata = TaskMetadata(
        name="WordSearch",
        type="Retrieval",
        main_score="ndcg_at_10",
        dataset={"path": "none", "revision": "1"},
        description="Made for a test.",
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        category="t2t",
        modalities=["text"],
        bibtex_citation="",
    )

    def load_data(self, **kwargs):
        columns = ("queries", QUERIES), ("corpus", CORPUS)
        tables = {
            name: Dataset.from_list([{"id": key, "text": text} for key, text in texts.items()])
            for name, texts in columns
        }
        self.dataset = {"default": {"test": {**tables, "relevant_docs": QRELS, "top_ranked": None}}}
        self.data_loaded = True


@pytest.fixture(scope="module")
def model():
    return SemsearchEncoder("hashing:32")


def test_is_an_mteb_encoder(model):
    assert isinstance(model, EncoderProtocol)
    assert model.mteb_model_meta.name == "semsearch/hashing-32"
    assert model.mteb_model_meta.revision == model.model.fingerprint


def test_the_score_equals_that_of_eval(model):
    retrieval = RetrievalSet("words", CORPUS, QUERIES, QRELS)
    rankers = load_rankers(["hashing:32"])
    [ours] = evaluate_retrieval(retrieval, rankers, ["nDCG@10"], whole_documents=True).results
    options = {"cache": None, "show_progress_bar": False, "co2_tracker": False}
    theirs = mteb.evaluate(model, WordSearch(), **options).task_results[0].get_score()
    assert theirs * 100 == pytest.approx(ours.estimate.value, abs=0.01)  # MTEB rounds


def test_queries_are_encoded_as_such():
    class Marked:
        def __getattr__(self, name):
            return getattr(load_encoder("hashing:32"), name)

        def encode_queries(self, texts):
            return ["query", *texts]

        def encode_documents(self, texts):
            return ["document", *texts]

    model = SemsearchEncoder(Marked())
    batches = [{"text": ["a", "b"]}, {"text": ["c"]}]
    assert model.encode(batches, prompt_type=PromptType.query) == ["query", "a", "b", "c"]
    for other in (PromptType.document, None):
        assert model.encode(batches, prompt_type=other)[0] == "document"
