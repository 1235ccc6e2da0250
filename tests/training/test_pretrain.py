"""Pre-training of a tiny BERT: both losses are BERT's and fall, and the result is a BERT."""

from __future__ import annotations

from itertools import chain

import numpy
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoTokenizer, BertForPreTraining

from semsearch import Document
from semsearch.encoders import load_encoder
from semsearch.errors import TrainingError
from semsearch.training import Pretraining, Recipe, Settings, train
from semsearch.training.masked_pairs import MaskedPairs, loss_of, measured
from semsearch.training.pretrain import BertSize, learn_word_pieces, new_bert


def pretrain(documents, folder, seed=0, **length):
    """Pre-train a tiny BERT; return what `train` returns, and the messages."""
    messages = []
    task = Pretraining(documents, "topics", size=BertSize.TINY, vocabulary=200)
    length = length or {"steps": 40}
    recipe = Recipe(**length, batch_size=16, max_tokens=32, learning_rate=1e-3, seed=seed)
    settings = Settings(None, folder, ["topics"], [recipe])
    return train(task, settings, messages.append), messages


def test_zero_epochs_write_random_weights(tmp_path):
    """The vocabulary covers titles and texts of one sentence; the weights depend on the seed."""
    corpus = [Document(str(n), f"word{n} here", title="entitled") for n in range(3)]
    for name, seed in [("one", 0), ("again", 0), ("other", 1)]:
        assert pretrain(corpus, tmp_path / name, seed, epochs=0)[0].tests == []
    one, again, other = (
        load_file(tmp_path / name / "model.safetensors") for name in ("one", "again", "other")
    )
    name = "bert.embeddings.word_embeddings.weight"
    assert torch.equal(one[name], again[name])
    assert not torch.equal(one[name], other[name])
    assert float(one[name].std()) == pytest.approx(0.02, rel=0.05)  # BertConfig.initializer_range
    assert "entitled" in AutoTokenizer.from_pretrained(tmp_path / "one").get_vocab()


def build_pairs(texts, size, max_tokens=32, seed=0):
    tokenizer = learn_word_pieces([*chain(*texts, *texts)], size, max_tokens)
    return MaskedPairs(texts, tokenizer, max_tokens, 100, seed), tokenizer


def test_loss_equals_that_of_transformers():
    """Computed for the masked tokens only; compared with BertForPreTraining over all tokens."""
    texts = [["one two three", "four five six"], ["seven eight", "nine ten one"]] * 3
    data, tokenizer = build_pairs(texts, 120)
    torch.manual_seed(0)
    model = new_bert(BertSize.TINY, tokenizer).eval()
    (batch,) = data.batches([0])
    with torch.no_grad():
        expected = float(model(**batch).loss)
        assert float(loss_of(model, **batch)["loss"]) == pytest.approx(expected, rel=1e-5)
    values = measured(model, [batch])
    losses = values["masked words, loss"] + values["next sentence, loss"]
    assert losses == pytest.approx(expected, rel=1e-5)


def test_pairs_are_encoded_as_bert_input():
    """[CLS] first [SEP] second [SEP], segments 0 and 1, as a tokenizer encodes two texts."""
    texts = [[f"alpha{n} beta", f"gamma{n} delta epsilon"] for n in range(6)]
    data, tokenizer = build_pairs(texts, 120, 64)
    (pairs,) = data.pairs(0)
    (batch,) = data.batches([0])
    ids = torch.where(batch["labels"] < 0, batch["input_ids"], batch["labels"])
    by_words = {tuple(tokenizer(a, b).input_ids) for a, _ in texts for _, b in texts}
    for row, pair in enumerate(pairs):
        length = int(batch["attention_mask"][row].sum())
        assert tuple(ids[row, :length].tolist()) in by_words
        segments = batch["token_type_ids"][row].tolist()
        assert segments[:length].index(1) == ids[row].tolist().index(tokenizer.sep_token_id) + 1
        assert bool(batch["next_sentence_label"][row]) != pair.is_next


def test_fifteen_percent_of_the_words_are_masked():
    """Devlin et al. 2019, section 3.1; special tokens are not."""
    random = numpy.random.default_rng(0)
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    texts = [[" ".join(random.choice(words, 20)) for _ in range(2)] for _ in range(400)]
    data, tokenizer = build_pairs(texts, 300, 64)
    special = torch.tensor([tokenizer.cls_token_id, tokenizer.sep_token_id])
    count = masked = 0
    for batch in data.batches([0]):
        chosen = batch["labels"] >= 0
        assert not torch.isin(batch["labels"][chosen], special).any()
        count += int(batch["attention_mask"].sum()) - 3 * len(chosen)
        masked += int(chosen.sum())
    assert masked / count == pytest.approx(0.15, abs=0.01)


def test_forty_steps(documents, tmp_path):
    """The losses fall; vectors are the mean of the BERT's token vectors; its heads are saved."""
    folder = tmp_path / "tiny"
    result, messages = pretrain(documents, folder)
    losses = [float(line.split("loss ")[-1]) for line in messages if "development loss" in line]
    assert len(losses) == 11  # before the first step, and ten times
    found = {test.measure: test.score for test in result.tests}
    assert found["masked words, loss"] + found["next sentence, loss"] < losses[0] - 0.8
    assert found["masked words found, %"] > 5
    assert messages[0].startswith("114 different documents")
    assert SentenceTransformer(str(folder), device="cpu").max_seq_length == 32
    vectors = load_encoder(str(folder), device="cpu").encode_documents(["The wave salt harbour."])
    bert, tokenizer = (one.from_pretrained(folder) for one in (BertForPreTraining, AutoTokenizer))
    with torch.no_grad():
        tokens = bert.eval().bert(**tokenizer("The wave salt harbour.", return_tensors="pt"))[0][0]
    expected = tokens.mean(0).numpy()
    numpy.testing.assert_allclose(vectors[0], expected / numpy.linalg.norm(expected), atol=1e-5)
    card = (folder / "README.md").read_text("utf-8")
    assert "- topics (held out): " in card
    assert not list(folder.glob("*.bin"))


@pytest.mark.parametrize(("texts", "count"), [(["One sentence."] * 50, 0), (["One. Two."] * 50, 1)])
def test_too_few_documents_are_reported_before_training(texts, count, tmp_path):
    documents = [Document(None, text) for text in texts]
    with pytest.raises(TrainingError, match=f"not {count}$"):
        pretrain(documents, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


TEXTS = ["The baker baked bread.", "A baker bakes; the bakers' bread is baked.", "Bäckerei"] * 3


def test_words_are_split(tmp_path):
    """The same texts give the same vocabulary, which is stored with the maximum length."""
    tokenizer = learn_word_pieces(TEXTS, 60, 32)
    assert tokenizer.tokenize("The bakers") == ["the", "bakers"]
    assert tokenizer.tokenize("bakerei")[0].startswith("baker")
    assert tokenizer.tokenize("BÄCKEREI") == tokenizer.tokenize("backerei")
    assert tokenizer.tokenize("żółw") == ["[UNK]"]
    tokenizer.save_pretrained(tmp_path)
    stored = AutoTokenizer.from_pretrained(tmp_path)
    for again in (stored, learn_word_pieces(TEXTS, 60, 32)):
        assert again.get_vocab() == tokenizer.get_vocab()
        assert again.model_max_length == 32
