"""Adding a language to a model: dictionary, vocabulary, parallel texts, a few training steps."""

from __future__ import annotations

from collections import defaultdict

import numpy
import pytest
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from semsearch.encoders import load_encoder
from semsearch.errors import ArgumentError, CorpusError
from semsearch.training import Recipe, Settings, Translation, train
from semsearch.training.translate import read_parallel
from semsearch.training.vocabulary import ITERATIONS, add_words, extended, translation_probabilities


def by_hand(translations, sources, nothing):
    """IBM Model 1 as in Brown et al. 1993, with dictionaries and loops.

    t(source | token) by expectation-maximisation, starting from equal values.
    """
    found = defaultdict(lambda: 1.0)
    for _ in range(ITERATIONS):
        counts, totals = defaultdict(float), defaultdict(float)
        for translation, source in zip(translations, sources, strict=True):
            tokens = [*translation, nothing]
            for word in source:
                whole = sum(found[word, token] for token in tokens)
                for token in tokens:
                    counts[word, token] += found[word, token] / whole
                    totals[token] += found[word, token] / whole
        found = defaultdict(float, {key: counts[key] / totals[key[1]] for key in counts})
    return found


def test_model_1_equals_the_papers():
    """das Haus, das Buch, ein Buch; the house, the book, a book (Koehn 2010, section 4.2)."""
    translations, sources = [[0, 1], [0, 2], [3, 2]], [[0, 1], [0, 2], [3, 2]]
    found = translation_probabilities(translations, sources, 4, 4).toarray()
    expected = by_hand(translations, sources, 4)
    for token in range(4):
        for word in range(4):
            assert found[token, word] == pytest.approx(expected[word, token], abs=1e-12)
    assert found.argmax(axis=1).tolist() == [0, 1, 2, 3]
    numpy.testing.assert_allclose(found.sum(axis=1), 1)


class TestWords:
    @pytest.fixture
    def known(self, write_bert):
        folder = write_bert(["the", "cat", "sleeps", "s", "##l", "##e", "##p"])
        return Tokenizer.from_file(str(folder / "tokenizer.json"))

    def test_new_words_become_pieces_and_english_is_unchanged(self, known):
        english = "The cat sleeps, sleep!"
        larger = extended(known, ["O gato dorme.", "A gata dorme no sofá."], ["The cat sleeps."])
        assert larger.encode(english).ids == known.encode(english).ids
        pieces = larger.encode("o gato dorme no sofá", add_special_tokens=False).tokens
        # The model's normaliser strips accents, from input as from the texts of the new pieces.
        assert pieces == ["o", "gato", "dorme", "no", "sofa"]
        assert larger.get_vocab_size() > known.get_vocab_size()
        before = known.get_vocab()
        assert {piece: larger.token_to_id(piece) for piece in before} == before

    def test_unseen_words_are_split_into_parts_of_seen_words(self, known):
        texts = ["menina meninas preocupado preocupada", "porta transporta parquetas"]
        larger = extended(known, texts, ["The cat sleeps."] * 2)

        def cut(text):
            return larger.encode(text, add_special_tokens=False).tokens

        assert cut("menino") == ["menin", "##o"]
        assert cut("preocupadas") == ["preocupada", "##s"]
        assert cut("preocupadissimo")[0] == "preocupad"
        assert cut("importa")[-1] == "##porta"  # the end of "transporta"
        assert cut("parto")[0] == "p"  # "par" is too short

    @pytest.mark.parametrize("text", ["狗在沙发上睡觉", "ねこはねる"])
    def test_nothing_is_unknown_in_scripts_without_spaces(self, known, text):
        larger = extended(known, ["猫在沙发上睡觉", "狗喜欢沙发", "ねこ はねる"], ["the cat"] * 3)
        tokens = larger.encode(text, add_special_tokens=False).tokens
        assert "".join(tokens).replace("##", "") == text


class TestTexts:
    @pytest.fixture
    def read(self, tmp_path):
        def call(name, content, language=None):
            file = tmp_path / name
            file.write_text(content)
            return read_parallel(str(file), language, print)

        return call

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("t.csv", "id,translation,source\n1,um gato,a cat\n2,,a dog\n3,um gato,a cat\n"),
            ("t.tsv", "x\ty\na cat\tum gato\n"),
            ("news.pt", "um gato \n\num gato\n"),
        ],
    )
    def test_pairs(self, read, tmp_path, name, content):
        (tmp_path / "news.en").write_text("a cat\na dog\na cat\n")
        found = read(name, content, None if name == "news.pt" else "pt")
        assert (found.texts, found.labels) == ((["a cat"], ["um gato"]), ("pt",))

    @pytest.mark.parametrize(
        ("content", "name", "error"),
        [
            ("source,translation\na,b\n", "t.csv", ArgumentError),  # which language?
            ("x,y,z\na,b,c\n", "t.csv", CorpusError),
            ("um gato\n", "news.pt", ArgumentError),  # no news.en
            ("um gato\n", "short.pt", CorpusError),  # short.en has two lines
            ("source,translation\n", "u.pt.csv", CorpusError),
        ],
    )
    def test_mistakes(self, read, tmp_path, content, name, error):
        (tmp_path / "short.en").write_text("a cat\na dog\n")
        with pytest.raises(error):
            read(name, content, "pt" if name.startswith("u") else None)


def test_translations_approach_their_sources(tiny, tmp_path):
    """Train on a language whose words are the English ones reversed."""
    things, deeds = "cat dog bird train boat apple", "runs sleeps falls waits burns grows"
    sources = [f"the {thing} {deed} now" for thing in things.split() for deed in deeds.split()]
    translations = [" ".join(word[::-1] for word in text.split()) for text in sources]
    rows = map(",".join, zip(sources, translations, strict=True))
    (tmp_path / "mirror.csv").write_text("\n".join(["source,translation", *rows]) + "\n")
    recipe = Recipe(batch_size=8, epochs=4, learning_rate=1e-3, embedding_learning_rate=1e-2)
    data, output = [str(tmp_path / "mirror.csv")], tmp_path / "model"
    settings = Settings(str(tiny), output, data, [recipe], development="none")
    folder = train(Translation(["xx"]), settings).folder
    base, student = (load_encoder(str(one), device="cpu") for one in (tiny, folder))
    teacher = base.encode_documents(sources)

    def cosine(vectors):
        return float((vectors * teacher).sum(axis=1).mean())

    assert cosine(student.encode_documents(translations)) > 0.9
    assert cosine(base.encode_documents(translations)) < 0.8
    assert cosine(student.encode_documents(sources)) > 0.9  # English is replayed
    assert "semsearch train translate" in (folder / "README.md").read_text("utf-8")


def test_initial_vectors_of_words(tiny):
    """By hand: after one sentence, its three words are equally probable translations."""
    model = SentenceTransformer(str(tiny), device="cpu")
    before = embedded(model, ["the", "cat", "runs", "dog", "train"])
    assert add_words(model, ["the cat runs"], ["dog the xtac"]) > 0
    after = embedded(model, ["the", "cat", "runs", "dog", "train", "xtac"])
    mean = before[:3].mean(axis=0)
    numpy.testing.assert_allclose(after[5], mean, atol=1e-6)  # new
    numpy.testing.assert_allclose(after[3], (before[3] + mean) / 2, atol=1e-6)  # 1 / (1 + 0 + 1)
    numpy.testing.assert_allclose(after[0], (2 * before[0] + mean) / 3, atol=1e-6)
    assert numpy.array_equal(after[[1, 2, 4]], before[[1, 2, 4]])


def embedded(model, words):
    """The rows of the embedding table for words."""
    table = model.transformers_model.get_input_embeddings().weight.detach().numpy()
    return table[model.tokenizer.convert_tokens_to_ids(words)]
