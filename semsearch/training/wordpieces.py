"""A vocabulary of word pieces, learnt from texts (Wu et al. 2016; BERT's way of cutting words)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from semsearch.errors import TrainingError

if TYPE_CHECKING:
    from transformers import BertTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
#: How many different characters get a piece of their own.
ALPHABET_SIZE = 1000
#: A piece has to occur as often.
LEAST_FREQUENCY = 2


def learn_word_pieces(
    texts: Callable[[], Iterable[str]], size: int, max_tokens: int, *, cased: bool = False
) -> BertTokenizerFast:
    """A BERT tokenizer with a vocabulary of its own.

    The same texts give the same vocabulary. The trainer of `tokenizers` does not see to that: it
    numbers the characters in the order of a hash map, and the numbers decide between pairs that
    are equally frequent. So the characters are given to it in an order.

    Args:
        texts: gives the texts; is called twice.
        size: how many pieces at most; there are fewer where the texts are few.
        max_tokens: how many tokens of a text the tokenizer lets through, special ones included.
        cased: keep capitals and accents.

    Raises:
        TrainingError: not even the characters fit into the vocabulary.
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
        min_frequency=LEAST_FREQUENCY,
        limit_alphabet=ALPHABET_SIZE,
        special_tokens=known,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts(), trainer)
    return BertTokenizerFast(
        vocab=tokenizer.get_vocab(), do_lower_case=not cased, model_max_length=max_tokens
    )


def save_tokenizer(tokenizer: BertTokenizerFast, folder: Path) -> None:
    """Write a tokenizer as today's transformers has it, and vocab.txt as all know it."""
    tokenizer.save_pretrained(folder)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda piece: piece[1])
    lines = "".join(f"{piece}\n" for piece, _ in pieces)
    (folder / "vocab.txt").write_text(lines, "utf-8", newline="\n")
