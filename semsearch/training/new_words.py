"""Word pieces for another language, added to a model's vocabulary.

A model trained on English splits the words of another language into fragments, whose vectors are
useless: distillation alone hardly helps. So each word gets a piece of its own.

*   In scripts with spaces, words are found by the model's own normaliser and pre-tokeniser and are
    added like English ones. So are prefixes that several words share, and words that end others:
    unseen words are split there.
*   Scripts without spaces (and Korean, whose particles are attached) are segmented: a unigram model
    (Kudo 2018) finds the words in the texts, and the longest match is taken.
*   Remaining unknown text gets a piece for each of its characters.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

from tokenizers import AddedToken, Tokenizer

from semsearch.analysis.forms import run_pattern
from semsearch.errors import EncoderError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

#: Maximum number of added words; the most frequent ones are taken.
MAX_WORDS = 30_000
#: Minimum letters of a word part, and of what precedes a part at the end of a word.
SHORTEST_PART, SHORTEST_BEFORE = 4, 3
#: Vocabulary size of the unigram model for segmentation.
MAX_SEGMENTS = 8_000


def extended(
    tokenizer: Tokenizer, translations: Sequence[str], sources: Sequence[str]
) -> Tokenizer:
    """A tokenizer with new pieces; existing pieces keep their ids.

    Words that also occur in the sources are not added: they are names, or the model reads them.

    Args:
        tokenizer: a WordPiece tokenizer (Wu et al. 2016).
        translations: sentences in the new language.
        sources: the sentences that they translate.

    Raises:
        EncoderError: the tokenizer is not WordPiece.
    """
    settings = json.loads(tokenizer.to_str())
    model = settings["model"]
    if model["type"] != "WordPiece":
        raise EncoderError(
            f"the model has {model['type']} tokens; words can be added only to models with "
            "WordPiece tokens, such as minilm"
        )
    vocabulary = model["vocab"]
    shared = set(_words(tokenizer, sources))
    found = _words(tokenizer, (run_pattern().sub(" ", text) for text in translations))
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
    characters = Counter(
        letter for word, count in _words(tokenizer, translations).items() for letter in word
    )
    for form in ("", prefix):
        _number(vocabulary, (form + letter for letter in sorted(characters)))
    larger = Tokenizer.from_str(json.dumps(settings))
    segments = [AddedToken(one, normalized=False) for one in _segments(translations)]
    larger.add_tokens(segments)
    return larger


def with_pieces(tokenizer: PreTrainedTokenizerFast, pieces: Tokenizer) -> PreTrainedTokenizerFast:
    """The model's tokenizer with these word pieces."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=tokenizer.model_max_length,
        model_input_names=tokenizer.model_input_names,
        **tokenizer.special_tokens_map,
    )


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


def _segments(texts: Sequence[str]) -> list[str]:
    """Words of two or more characters in the runs of scripts without spaces."""
    from tokenizers.models import Unigram
    from tokenizers.trainers import UnigramTrainer

    runs = sorted(run for text in texts for run in run_pattern().findall(text))
    if not runs:
        return []
    model = Tokenizer(Unigram())
    trainer: Any = UnigramTrainer(vocab_size=MAX_SEGMENTS, show_progress=False)
    model.train_from_iterator(runs, trainer)
    return sorted(piece for piece in model.get_vocab() if len(piece) > 1)
