"""Whether the vocabulary of an encoder suits the language of texts.

A vocabulary has the words of its own languages and splits others into pieces, whose number
indicates how well a model reads a language (Rust et al. 2021, How good is your tokenizer?). A piece
of MiniLM's English vocabulary has 4.2 letters in notes, 4.6 in biology papers, 2.4 in Portuguese,
2.2 in German and 1 in Russian or Chinese.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from semsearch.encoders.model_folder import find_model, transformer_folder

#: The number of texts sampled, and the characters read of each.
SAMPLE_TEXTS, SAMPLE_CHARACTERS = 64, 400
#: Fewer letters say nothing.
MIN_LETTERS = 20
#: Vocabularies with fewer letters per piece do not suit the texts.
MIN_LETTERS_PER_PIECE = 2.8
#: Vocabularies of at least this size are multilingual, with shorter pieces by design.
SHARED_VOCABULARY = 100_000

#: Words between spaces, and signs before or after them; no codes or addresses.
_WORD = re.compile(r"(?<!\S)[^\W\d_]+(?!\w)")


def poor_fit(spec: str, texts: Sequence[str]) -> float | None:
    """The letters per piece of texts that a vocabulary does not suit; None if it suits them.

    Names, which have a capital, are not counted. None, too, for encoders without word pieces.
    """
    from tokenizers import Tokenizer

    with suppress(Exception):  # loading the model reports the error
        folder = transformer_folder(find_model(spec, local_files_only=True).path)
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.no_padding()
        heads = [text[:SAMPLE_CHARACTERS] for text in texts[:SAMPLE_TEXTS]]
        words = [word for head in heads for word in _WORD.findall(head) if not word[0].isupper()]
        letters = sum(map(len, words))
        if letters < MIN_LETTERS or tokenizer.get_vocab_size() >= SHARED_VOCABULARY:
            return None
        unknown = {tokenizer.token_to_id(piece) for piece in ("[UNK]", "<unk>")}
        encodings = tokenizer.encode_batch([f" {word}" for word in words], add_special_tokens=False)
        pieces = sum(
            len(word) if unknown.intersection(encoding.ids) else len(encoding.ids)
            for word, encoding in zip(words, encodings, strict=True)
        )
        return letters / pieces if letters < MIN_LETTERS_PER_PIECE * pieces else None
    return None
