"""Encoders without a neural network: averaged word vectors with their files, and hashing."""

from __future__ import annotations

import numpy
import pytest
import torch

from semsearch.encoders import load_encoder, word_vectors
from semsearch.encoders.base import KnowsWords
from semsearch.encoders.words import word_spans
from semsearch.errors import ArgumentError, EncoderError, ModelNotFoundError
from semsearch.protocols import Encoder

SMALL = "the 1 0 0\ncat 0 2 0\nsat 0 0 4\ndo 3 0 4\nn't 0 3 4\n"

#: By the Treebank's tokenizer.sed and the Stanford tokenizer's documented rules; GloVe's
#: files, unlike these, have "cannot" and plain quotes.
DIVIDED = {
    "I don't know.": "I do n't know .",
    "They can't, won't and shouldn’t": "They ca n't , wo n't and should n’t",
    "She's 'll I'm you've we'd they're": "She 's ' ll I 'm you 've we 'd they 're",
    "the dogs' bowls; O'Brien's": "the dogs ' bowls ; O'Brien 's",
    "I'm gonna pay, gimme, gotta": "I 'm gon na pay , gim me , got ta",
    "Lemme see, wanna go": "Lem me see , wan na go",
    "Mr. Smith (of the U.S.) said: go!": "Mr. Smith ( of the U.S. ) said : go !",
    "3.14, 1,000 and 10:30; 1/2.": "3.14 , 1,000 and 10:30 ; 1/2 .",
    "$5 -- 12%...": "$ 5 -- 12 % ...",
    "a well-known AT&T 1990s": "a well-known AT&T 1990s",
    "see https://example.org/a?b=c, or me@example.org.": (
        "see https://example.org/a?b=c , or me@example.org ."
    ),
    "No. 5? No.": "No. 5 ? No .",
    "``so'' \"so\" ____": "`` so '' \" so \" ____",
}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SEMSEARCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def loaded(tmp_path):
    """Writes word vectors to a file and loads them as an encoder."""

    def load(text, name="v.txt"):
        (tmp_path / name).write_text(text, "utf-8")
        return load_encoder(f"glove:{tmp_path / name}")

    return load


def unit(*numbers):
    return numpy.array(numbers) / numpy.linalg.norm(numbers)


def vector(encoder, text):
    return encoder.encode_documents([text])[0]


class TestAverages:
    def test_by_hand(self, loaded):
        """A text without a known word gets the mean of all."""
        encoder = loaded(SMALL)
        assert isinstance(encoder, Encoder)
        assert encoder.description()["max_tokens"] == 256
        expected = {
            "The cat sat.": unit(1, 2, 4),
            "cat, cat; the CAT": unit(1, 6, 0),
            "Don't": unit(3, 3, 8),
            "zebra cat": unit(0, 1, 0),
            **dict.fromkeys(("zebra", "…", ""), unit(4, 5, 12)),
        }
        vectors = encoder.encode_documents(list(expected))
        assert vectors.dtype == numpy.float32
        assert vectors.shape == (7, encoder.dimension) == (7, 3)
        numpy.testing.assert_allclose(vectors, list(expected.values()), atol=1e-7)
        numpy.testing.assert_array_equal(vectors, encoder.encode_queries(list(expected)))

    def test_words_that_cancel_out_get_the_mean_too(self, loaded):
        encoder = loaded("a 1 2\nb -1 -2\nc 3 0\n")
        numpy.testing.assert_allclose(vector(encoder, "a b"), [1, 0], atol=1e-7)
        nothing = loaded("a 1 2\nb -1 -2\n", name="nothing.txt")
        assert numpy.linalg.norm(vector(nothing, "a b")) == pytest.approx(1)

    def test_a_vector_does_not_depend_on_its_neighbours(self, loaded):
        encoder = loaded(SMALL)
        parts = ["the cat", "sat", "don't the"]
        texts = [" ".join(parts[i % 3 :] * (i % 7 + 1)) for i in range(100)]
        together = encoder.encode_documents(texts)
        numpy.testing.assert_array_equal(together, [vector(encoder, text) for text in texts])
        assert encoder.encode_documents([]).shape == (0, 3)


class TestFormats:
    @pytest.mark.parametrize("header", ["", "5 3\n"])
    @pytest.mark.parametrize("end", ["\n", " \n", "\r\n"])
    def test_with_and_without_a_header(self, loaded, header, end):
        encoder = loaded(header + SMALL.replace("\n", end))
        assert encoder.description()["words"] == 5
        numpy.testing.assert_allclose(vector(encoder, "the cat"), unit(1, 2, 0), atol=1e-7)

    def test_words_with_spaces_as_in_840b_and_equal_words(self, loaded):
        """The first of equal words counts."""
        encoder = loaded("the 1 0\n. . . 0 1\nat name@domain.com 1 1\ncat 2 1\ncat 0 5\n")
        words = [". . .", "at name@domain.com", ".", "cat"]
        assert encoder._words.vocabulary.rows(words) == {words[0]: 1, words[1]: 2, "cat": 3}
        assert encoder.description()["words"] == 4
        numpy.testing.assert_allclose(vector(encoder, "cat"), unit(2, 1), atol=1e-7)

    def test_more_than_a_block(self, loaded, monkeypatch):
        monkeypatch.setattr(word_vectors, "BLOCK_WORDS", 4)
        encoder = loaded("".join(f"w{number} {number % 7} {number + 1}\n" for number in range(11)))
        for number in range(11):
            expected = unit(number % 7, number + 1)
            numpy.testing.assert_allclose(vector(encoder, f"w{number}"), expected, atol=1e-6)


class TestFaults:
    @pytest.mark.parametrize(
        ("text", "place"),
        [
            ("", "v.txt contains no word vectors"),
            ("0 3\n", "v.txt contains no word vectors"),
            ("cat 1\n", "v.txt:1: not a word and 1 "),
            ("2 3\n\0\0 \0\x80\x1fx \n", "v.txt:2: "),
            (SMALL + "dog 1 2\n", "v.txt:6: not a word and 3 "),
            (SMALL + "dog 1 2 x\n", "v.txt:6: "),
            ("5 3\n" + SMALL + "\n", "v.txt:7: "),
            (SMALL + "dog 1 2 nan\n", "v.txt:6: "),
            (SMALL + "dog 1 2 1e39\n", "v.txt:6: "),
        ],
    )
    def test_invalid_files(self, loaded, text, place, tmp_path):
        with pytest.raises(EncoderError, match=place):
            loaded(text)
        assert [path for path in (tmp_path / "cache").glob("*") if path.is_dir()] == []

    def test_no_such_file(self):
        for name in ("nowhere.txt", "", "."):
            with pytest.raises(ModelNotFoundError):
                load_encoder(f"glove:{name}")


class TestWords:
    @pytest.mark.parametrize("text", DIVIDED)
    def test_words_as_in_the_treebank(self, text):
        spans = word_spans(text, contractions=True)
        assert [text[start:end] for start, end in spans] == DIVIDED[text].split()

    def test_marks_are_parts_of_words(self, loaded):
        """The vowel signs of Hindi, and accents that stand alone, as PDF files have them."""
        encoder = loaded("हिन्दी 0 1\ncafé 1 1\n")
        assert vector(encoder, "हिन्दी का").tolist() == [0, 1]
        assert vector(encoder, "a cafe\u0301").tolist() == vector(encoder, "café").tolist()

    def test_contractions_stay_whole_where_the_file_has_them_whole(self, loaded):
        encoder = loaded("don't 1 0\ncat 0 1\n")
        assert encoder.description()["contractions"] is False
        numpy.testing.assert_allclose(vector(encoder, "Don’t"), [1, 0])

    def test_spans_cover_all_but_white_space(self, loaded):
        encoder = loaded(SMALL)
        text = "Nö, don't\tdo it… 3.5€ — 你好, cafe\u0301 #tag @you\n(ok)"
        spans = encoder.token_spans(text)
        assert spans.dtype == numpy.int64
        assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
        assert encoder.token_spans("").shape == (0, 2)

    def test_a_file_with_capitals(self, loaded):
        lower = loaded(SMALL + "UNK 1 1 1\n" + "".join(f"w{i} 1 1 1\n" for i in range(200)))
        assert lower.description()["cased"] is False
        cased = loaded("Turkey 1 0\nturkey 0 1\nthe 1 1\nNATO 2 1\n", name="cased.txt")
        assert cased.description()["cased"] is True
        numpy.testing.assert_allclose(vector(cased, "Turkey"), [1, 0])
        numpy.testing.assert_allclose(vector(cased, "turkey TURKEY"), [0, 1])
        numpy.testing.assert_allclose(vector(cased, "The"), unit(1, 1), atol=1e-7)
        assert cased.coverage().unknown == 0

    def test_unknown_compounds_use_their_parts(self, loaded):
        encoder = loaded("well 1 0 0\nknown 0 1 0\nwell-known 0 0 1\n")
        numpy.testing.assert_allclose(vector(encoder, "well-known"), [0, 0, 1])
        numpy.testing.assert_allclose(vector(encoder, "known/well"), unit(1, 1, 0), atol=1e-7)
        assert encoder.coverage() == (2, 0, ())


def test_coverage_counts_words_of_documents(loaded):
    encoder = loaded(SMALL)
    assert isinstance(encoder, KnowsWords)
    assert encoder.coverage() == (0, 0, ())
    encoder.encode_documents(["The zebra sat.", "A zebra!", "the gnu"])
    encoder.encode_queries(["zebra"])
    assert encoder.coverage() == (7, 4, ("zebra", "a", "gnu"))
    encoder.encode_documents([" ".join(f"unknown{number}" for number in range(20))])
    assert len(encoder.coverage().most_frequent_unknown) == 10


def test_a_file_is_converted_once_and_a_changed_one_is_another_encoder(loaded, monkeypatch):
    changed = loaded(SMALL.replace("cat 0 2 0", "cat 5 0 0"))
    first = loaded(SMALL)
    monkeypatch.setattr(word_vectors, "_convert", None)  # cannot be called again
    again, copy = loaded(SMALL), loaded(SMALL, name="copy.txt")
    numpy.testing.assert_array_equal(vector(again, "the cat"), vector(first, "the cat"))
    assert changed.fingerprint != again.fingerprint == copy.fingerprint
    numpy.testing.assert_allclose(vector(changed, "cat"), [1, 0, 0])
    numpy.testing.assert_allclose(vector(again, "cat"), [0, 1, 0])


FISH = ["a red fish", "a blue bird", "a red fish swims"]


def test_texts_that_share_words_are_similar(hashing):
    vectors = hashing.encode_documents(["the red house", "House, red!", "a green tree", "…"])
    numpy.testing.assert_allclose(numpy.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    # two words of three: 2 / (sqrt(3) * sqrt(2))
    assert vectors[0] @ vectors[1] == pytest.approx(2 / 6**0.5, abs=1e-6)
    assert vectors[0] @ vectors[2] < 0.3


def test_a_word_has_a_place_and_a_sign():
    """By hand, from CRC-32: dog is 0x812c397d, sun 0x51b4cef7."""
    encoder = load_encoder("hashing:8")
    vectors = encoder.encode_queries(["Dog, dog", "sun"])
    assert vectors[0].tolist() == numpy.eye(8)[5].tolist()
    assert vectors[1].tolist() == (-numpy.eye(8))[7].tolist()
    assert encoder.token_spans("a, b").tolist() == [[0, 1], [3, 4]]
    assert encoder.token_spans("").shape == (0, 2)


def test_dimension_is_part_of_the_spec_and_the_fingerprint():
    specs = ("hashing:16", "hashing", "hashing:2", "hashing:65536")
    encoders = [load_encoder(spec) for spec in specs]
    assert [encoder.dimension for encoder in encoders] == [16, 256, 2, 65_536]
    assert len({encoder.fingerprint for encoder in encoders}) == 4
    for spec in ("hashing:1", "hashing:x", "hashing:65537", "hashing@96d"):
        with pytest.raises(EncoderError, match="2 to 65536"):
            load_encoder(spec)


def test_encode(hashing, monkeypatch):
    several = hashing.encode(FISH, batch_size=2, show_progress_bar=False)
    assert (several == hashing.encode_documents(FISH)).all()
    assert numpy.array_equal(hashing.encode(FISH[1], prompt_name="document"), several[1])
    assert isinstance(hashing.encode(FISH, convert_to_tensor=True), torch.Tensor)
    monkeypatch.setattr(hashing, "encode_queries", lambda texts: numpy.full((len(texts), 2), 7))
    assert hashing.encode(FISH, "query")[0].tolist() == [7, 7]
    with pytest.raises(ArgumentError):
        hashing.encode([1])
