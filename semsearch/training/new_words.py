"""Word pieces for another language, added to those that a model knows.

A model that was trained on English cuts the words of another language into scraps, and what it
makes of these is of no use: distillation alone hardly helps. So words get a piece of their own.

*   Words of scripts with spaces are found by the model's own normaliser and pre-tokeniser and stand
    in the vocabulary as English ones do. So do beginnings that several of them share, and words at
    the ends of others: what is in none of the texts is cut there.
*   Scripts without spaces (and Korean, whose particles are attached) are segmented: the words are
    learnt from the text by a unigram model (Kudo 2018), and the longest one is matched.
*   Whatever is then still unknown gets a piece for each of its characters.
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

#: How many words of a language are added at most; the frequent ones come first.
MOST_WORDS = 30_000
#: How many letters a part of words has at least, and what stands before one at the end.
SHORTEST_PART, SHORTEST_BEFORE = 4, 3
#: The size of the unigram model from which segments are taken.
MOST_SEGMENTS = 8_000


def extended(
    tokenizer: Tokenizer, translations: Sequence[str], sources: Sequence[str]
) -> Tokenizer:
    """A tokenizer with more pieces; those that it has keep their ids.

    A word that sources have too is left as it is: a name, or one that the model reads already.

    Args:
        tokenizer: of word pieces (Wu et al. 2016).
        translations: sentences in the new language.
        sources: the sentences that they translate.

    Raises:
        EncoderError: it has another kind of pieces.
    """
    settings = json.loads(tokenizer.to_str())
    model = settings["model"]
    if model["type"] != "WordPiece":
        raise EncoderError(
            f"the model has {model['type']} tokens; words can be added to a model with word pieces "
            "(WordPiece), such as minilm"
        )
    vocabulary = model["vocab"]
    shared = set(_words(tokenizer, sources))
    found = _words(tokenizer, (run_pattern().sub(" ", text) for text in translations))
    new = [
        word
        for word, _ in found.most_common()
        if word not in vocabulary and word not in shared and any(map(str.isalpha, word))
    ]
    _number(vocabulary, sorted(new[:MOST_WORDS]))
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
    """A model's tokenizer with other word pieces."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_max_length=tokenizer.model_max_length,
        model_input_names=tokenizer.model_input_names,
        **tokenizer.special_tokens_map,
    )


def _words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, as the tokenizer finds words before it cuts them into pieces."""
    found: Counter[str] = Counter()
    for text in texts:
        normal = tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text
        found.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normal))
    return found


def _number(vocabulary: dict[str, int], pieces: Iterable[str]) -> None:
    """Give the pieces that are not there yet the next ids."""
    following = max(vocabulary.values()) + 1
    for piece in pieces:
        if piece not in vocabulary:
            vocabulary[piece] = following
            following += 1


def _stems(words: Iterable[str]) -> list[str]:
    """The longest beginnings that two words share, each with an ending of its own."""
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
    trainer: Any = UnigramTrainer(vocab_size=MOST_SEGMENTS, show_progress=False)
    model.train_from_iterator(runs, trainer)
    return sorted(piece for piece in model.get_vocab() if len(piece) > 1)
