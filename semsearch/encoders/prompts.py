"""Prompts: what a model wants to read before each query or document."""

from __future__ import annotations

from semsearch.errors import EncoderError


def tokens_left(spec: str, max_tokens: int, name: str, used: int) -> int:
    """How many tokens of a text a model reads behind a prompt.

    Args:
        spec: the model.
        max_tokens: how many tokens it reads in all, special tokens not counted.
        name: the prompt's, ``query`` or ``document``.
        used: how many tokens the prompt has.

    Raises:
        EncoderError: none are left.
    """
    if used >= max_tokens:
        raise EncoderError(
            f"model '{spec}' reads {max_tokens} tokens, and its prompt for a {name} has {used} "
            "already; shorten the prompt in its config_sentence_transformers.json"
        )
    return max_tokens - used
