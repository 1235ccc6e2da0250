"""A WordPiece vocabulary, learnt from texts (Wu et al. 2016), as BERT uses it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.errors import TrainingError

if TYPE_CHECKING:
    from transformers import BertTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: Maximum number of characters with pieces of their own.
ALPHABET_SIZE = 1000
#: Minimum number of occurrences of a piece.
MIN_FREQUENCY = 2


def learn_word_pieces(
    texts: Callable[[], Iterable[str]], size: int, max_tokens: int, *, cased: bool = False
) -> BertTokenizerFast:
    """A BERT tokenizer with a vocabulary learnt from texts.

    The same texts give the same vocabulary. The trainer of `tokenizers` does not guarantee that: it
    numbers the characters in the order of a hash map, and the numbers break ties between equally
    frequent pairs. So the characters are passed to it in a fixed order.

    Args:
        texts: returns the texts; it is called twice.
        size: maximum number of pieces; few texts give fewer.
        max_tokens: maximum tokens per text, including special tokens.
        cased: keep capitals and accents.

    Raises:
        TrainingError: the vocabulary is too small for the characters alone.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.trainers import WordPieceTrainer
    from transformers import BertTokenizerFast

    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))  # noqa: S106 - no password
    tokenizer.normalizer = BertNormalizer(lowercase=not cased)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    characters: Counter[str] = Counter()
    for text in texts():
        characters.update(tokenizer.normalizer.normalize_str(text))
    alphabet = sorted(
        character
        for character, _ in characters.most_common(ALPHABET_SIZE)
        if not character.isspace()
    )
    known = [*SPECIAL, *alphabet, *(f"##{character}" for character in alphabet)]
    if size < len(known):
        raise TrainingError(
            f"a vocabulary of {size} pieces is too small: the characters of this corpus alone "
            f"need {len(known)}; raise --vocabulary"
        )
    trainer = WordPieceTrainer(
        vocab_size=size,
        min_frequency=MIN_FREQUENCY,
        limit_alphabet=ALPHABET_SIZE,
        special_tokens=known,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return BertTokenizerFast(
        vocab=tokenizer.get_vocab(), do_lower_case=not cased, model_max_length=max_tokens
    )


def save_tokenizer(tokenizer: BertTokenizerFast, folder: Path) -> None:
    """Write a tokenizer in the format of current transformers, and as vocab.txt."""
    tokenizer.save_pretrained(folder)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda piece: piece[1])
    lines = "".join(f"{piece}\n" for piece, _ in pieces)
    (folder / "vocab.txt").write_text(lines, "utf-8", newline="\n")
