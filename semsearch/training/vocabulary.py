"""Word pieces for another language: which are added to a model, and their first meaning.

Each word gets a piece of its own, and so do prefixes that several words share, words that end
others, and characters. A dictionary of the sentences, by IBM Model 1 (Brown et al. 1993, section
4.1), gives the first meaning of a word. In training, words are cut into parts at random
(MaxMatch-Dropout, Hiraoka 2022): a model that always sees a word as one piece does not learn its
parts, by which it reads others.
"""

from __future__ import annotations

import json
import sys
import zlib
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, compress, pairwise
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from semsearch.encoders.torch_models import whole_text_tokenizer
from semsearch.errors import EncoderError
from semsearch.protocols import Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_array
    from sentence_transformers import SentenceTransformer

Ids = Sequence[int]
Numbers = NDArray[numpy.int64]

#: Maximum number of added words; the most frequent ones are taken.
MAX_WORDS = 30_000
#: Minimum letters of a word part, and of what precedes a part at the end of a word.
SHORTEST_PART, SHORTEST_BEFORE = 4, 3
#: Sorts after every continuation of a prefix.
LAST_CHARACTER = chr(sys.maxunicode)
#: Iterations of expectation-maximisation.
ITERATIONS = 6
#: Sentences for the vocabulary and the dictionary, which takes about 10 kB for each.
MAX_SENTENCES = 200_000
#: The probability that a new word is cut.
DROPPED = 0.02
#: Number of vocabularies with missing words; each batch is tokenised with one of them.
VOCABULARIES = 12


def add_words(
    model: SentenceTransformer, sources: Sequence[str], translations: Sequence[str]
) -> int:
    """Add the words of translated sentences to a model; return the number of new pieces.

    A known piece in the translations moves towards the mean of its own translations: further, the
    larger the share of its occurrences that are in the translations, not the sources.
    """
    import torch
    from transformers import PreTrainedTokenizerFast

    step = -(-len(sources) // MAX_SENTENCES)
    sources, translations = sources[::step], translations[::step]
    known = whole_text_tokenizer(model.tokenizer)
    larger = extended(known, translations, sources)
    old: int = known.get_vocab_size()
    new: int = larger.get_vocab_size()
    translated, read = (
        [one.ids for one in tokenizer.encode_batch(list(texts), add_special_tokens=False)]
        for tokenizer, texts in ((larger, translations), (known, sources))
    )
    probable = translation_probabilities(translated, read, new, old)
    in_translations, in_sources = (
        numpy.bincount(numpy.fromiter(chain.from_iterable(texts), numpy.int64), minlength=new)
        for texts in (translated, read)
    )
    share = in_translations / (in_translations + in_sources + 1)
    share[old:] = in_translations[old:] > 0
    transformer: Any = model.transformers_model
    vectors = transformer.get_input_embeddings().weight.detach().cpu().numpy()
    unknown = numpy.repeat(vectors[[model.tokenizer.unk_token_id]], new - old, axis=0)
    initial = numpy.concatenate([vectors[:old], unknown])
    initial += share[:, None] * (probable @ vectors[:old] - initial)
    _begin_parts(initial, larger, in_translations, old)
    transformer.resize_token_embeddings(new, mean_resizing=False)
    with torch.no_grad():
        transformer.get_input_embeddings().weight.copy_(torch.from_numpy(initial))
    tokenizer = model.tokenizer
    model[0].processor = PreTrainedTokenizerFast(
        tokenizer_object=larger,
        model_max_length=tokenizer.model_max_length,
        model_input_names=tokenizer.model_input_names,
        **tokenizer.special_tokens_map,
    )
    return new - old


def _begin_parts(
    vectors: Matrix, pieces: Tokenizer, used: NDArray[numpy.int64], known: int
) -> None:
    """Initialise the new pieces that no translation uses.

    A word at the end of others gets the vector of that word; a prefix, the mean of its words.
    """
    vocabulary, continuing = pieces.get_vocab(), pieces.model.continuing_subword_prefix
    words = sorted(vocabulary)
    for piece, number in vocabulary.items():
        if number < known or used[number]:
            continue
        longer = words[bisect(words, piece) : bisect(words, piece + LAST_CHARACTER)]
        word = piece.removeprefix(continuing)
        whole = [word] if word != piece and word in vocabulary else longer
        numbers = [vocabulary[one] for one in whole]
        weights = numpy.sqrt(used[numbers])
        if weights.any():
            vectors[number] = numpy.average(vectors[numbers], axis=0, weights=weights)


def extended(known: Tokenizer, translations: Sequence[str], sources: Sequence[str]) -> Tokenizer:
    """A WordPiece tokenizer with new pieces; existing pieces keep their ids.

    Words that also occur in the sources are not added: they are names, or the model reads them.
    """
    settings = json.loads(known.to_str())
    model = settings["model"]
    if model["type"] != "WordPiece":
        raise EncoderError(
            f"the model has {model['type']} tokens; words can be added only to models with "
            "WordPiece tokens, such as minilm"
        )
    vocabulary = model["vocab"]
    shared = set(_words(known, sources))
    found = _words(known, translations)
    new = [
        word
        for word, _ in found.most_common()
        if word not in vocabulary and word not in shared and any(map(str.isalpha, word))
    ]
    _number(vocabulary, sorted(new[:MAX_WORDS]))
    prefix = model["continuing_subword_prefix"]
    words = set(filter(str.isalpha, found))
    _number(vocabulary, _stems(words))
    _number(vocabulary, (prefix + word for word in _ends(words)))
    characters = sorted({letter for word in found for letter in word})
    for form in ("", prefix):
        _number(vocabulary, (form + letter for letter in characters))
    return Tokenizer.from_str(json.dumps(settings))


def _words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """The count of each word, as split by the tokenizer's pre-tokeniser."""
    found: Counter[str] = Counter()
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        found.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    return found


def _number(vocabulary: dict[str, int], pieces: Iterable[str]) -> None:
    """Add missing pieces to the vocabulary, with the next ids."""
    following = max(vocabulary.values()) + 1
    for piece in pieces:
        if piece not in vocabulary:
            vocabulary[piece] = following
            following += 1


def _stems(words: Iterable[str]) -> list[str]:
    """The longest prefixes that two words share, both words being longer."""
    beginnings = sorted(word[:-1] for word in words)
    shared = {commonprefix(pair) for pair in pairwise(beginnings)}  # noqa: RUF071 - characters
    return sorted(stem for stem in shared if len(stem) >= SHORTEST_PART)


def _ends(words: set[str]) -> list[str]:
    """The words that are also the end of a longer one, as in compounds."""
    ends = {
        word[start:]
        for word in words
        for start in range(SHORTEST_BEFORE, len(word) - SHORTEST_PART + 1)
    }
    return sorted(words & ends)


def translation_probabilities(
    translations: Sequence[Ids], sources: Sequence[Ids], translated: int, known: int
) -> csr_array:
    """The probability of each source token, given a token of the translation.

    `translated` and `known` are the vocabulary sizes of translations and sources, and the shape of
    the result. A row sums to 1 if its token occurs, else to 0.
    """
    from scipy.sparse import csr_array

    token, source, slot = _links(translations, sources, translated)
    pairs, pair = numpy.unique(token * known + source, return_inverse=True)
    row, column = pairs // known, pairs % known
    probability = numpy.ones(len(pairs))
    for _ in range(ITERATIONS):
        # E-step: the share of each source token that each token of its translation explains.
        weight = probability[pair]
        share = weight / numpy.bincount(slot, weight)[slot]
        # M-step: the shares, summed over all sentences and normalised for each token.
        count = numpy.bincount(pair, share)
        probability = count / numpy.bincount(row, count)[row]
    is_word = row < translated
    cells = probability[is_word], (row[is_word], column[is_word])
    return csr_array(cells, shape=(translated, known))


def _links(
    translations: Sequence[Ids], sources: Sequence[Ids], nothing: int
) -> tuple[Numbers, Numbers, Numbers]:
    """Links of each source token to each token of its translation, and to `nothing`.

    Returns the translation's token, the source token and the number of its occurrence.
    """
    tokens, known, lengths = [], [], []
    for ids, source in zip(translations, sources, strict=True):
        tokens.append(numpy.tile(numpy.array([*ids, nothing], numpy.int64), len(source)))
        known.append(numpy.array(source, numpy.int64))
        lengths += [len(ids) + 1] * len(source)
    repeated = numpy.concatenate(known).repeat(lengths)
    return numpy.concatenate(tokens), repeated, numpy.arange(len(lengths)).repeat(lengths)


class WordDropout:
    """Tokenises batches with a model's vocabulary, from which some new words are missing.

    Which ones depends on the texts of the batch, so that a resumed run gives the same result. The
    module is the first one of a bi-encoder; ids from `known` are those of new pieces.
    """

    def __init__(self, module: Any, known: int, seed: int) -> None:
        random = numpy.random.default_rng(seed)
        self._module = module
        self._whole = whole = module.tokenizer.backend_tokenizer.model
        vocabulary = module.tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False)
        words = [
            piece
            for piece in sorted(vocabulary, key=vocabulary.__getitem__)
            if vocabulary[piece] >= known and len(piece) >= SHORTEST_PART and piece.isalpha()
        ]
        self._models = []
        for _ in range(VOCABULARIES):
            missing = set(compress(words, random.random(len(words)) < DROPPED))
            self._models.append(
                WordPiece(
                    {piece: n for piece, n in vocabulary.items() if piece not in missing},
                    unk_token=whole.unk_token,
                    max_input_chars_per_word=whole.max_input_chars_per_word,
                    continuing_subword_prefix=whole.continuing_subword_prefix,
                )
            )

    def __call__(self, texts: Sequence[str], **options: Any) -> dict[str, Any]:
        """The features of texts, as input of the model."""
        backend = self._module.tokenizer.backend_tokenizer
        backend.model = self._models[zlib.crc32("\n".join(texts).encode()) % VOCABULARIES]
        features: dict[str, Any] = self._module.preprocess(texts, **options)
        backend.model = self._whole
        return features
