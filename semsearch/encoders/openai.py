"""Encoders on a server with OpenAI's interface: OpenAI, Ollama, vLLM, llama.cpp, TEI."""

from __future__ import annotations

import os
import time
from typing import Any
from urllib.parse import urlsplit

from semsearch.encoders.given import FunctionEncoder
from semsearch.errors import EncoderError, first_line

_OPENAI_URL = "https://api.openai.com/v1"
#: Texts per request; TEI accepts 32 by default.
BATCH_TEXTS = 32
#: The waits before a request is repeated, in seconds; a server may ask for up to MAX_WAIT.
WAITS = (0.5, 1.0, 2.0, 4.0)
MAX_WAIT, TIMEOUT_SECONDS = 60.0, 120.0


class OpenAIEncoder(FunctionEncoder):
    """A model on a server with OpenAI's interface for embeddings.

    The key is that of OPENAI_API_KEY, read at each request. A spec that comes from an index only
    reaches the server that OPENAI_BASE_URL names (OpenAI's by default), or one on this machine
    without the key: an index from elsewhere gets neither texts nor the key.

    Args:
        spec: ``openai:MODEL`` or ``openai:MODEL@URL``, such as
            ``openai:nomic-embed-text@http://localhost:11434/v1``.
        from_index: whether the spec comes from an index.

    Raises:
        EncoderError: the spec has no model or no such URL, or an index names another server.
    """

    def __init__(self, spec: str, *, from_index: bool = False) -> None:
        self.model, _, url = spec.partition(":")[2].partition("@http")
        usual = os.environ.get("OPENAI_BASE_URL", _OPENAI_URL).rstrip("/")
        self.url = f"http{url}".rstrip("/") if url else usual
        address = urlsplit(self.url)
        if not self.model or not address.hostname or address.username or address.query:
            raise EncoderError("the spec is not openai:MODEL@URL, with a URL without a password")
        self._sends_key = not from_index or self.url == usual
        if not self._sends_key and address.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise EncoderError(
                f"the index names a model at {self.url}; to send it your texts, set "
                f"OPENAI_BASE_URL={self.url}, or open the index with load_encoder('{spec}')"
            )
        fingerprint = f"openai-1-{self.model}"
        super().__init__(f"openai:{self.model}@{self.url}", fingerprint, self._embed, self._embed)

    def _embed(self, texts: list[str]) -> list[list[float]]:
        """The vectors that the server sends.

        Raises:
            EncoderError: the server cannot be reached, refuses, or sends something else.
        """
        found = []
        for start in range(0, len(texts), BATCH_TEXTS):
            answer = self._answer(texts[start : start + BATCH_TEXTS])
            try:
                items = sorted(answer["data"], key=lambda item: item["index"])
                found += [item["embedding"] for item in items]
            except (KeyError, TypeError) as error:
                raise EncoderError(f"{self.url} sent no embeddings: {error!r}") from error
        return found

    def _answer(self, texts: list[str]) -> Any:
        """The JSON value that the server answers, at one of several attempts."""
        import httpx2

        key = os.environ.get("OPENAI_API_KEY") if self._sends_key else None
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"model": self.model, "input": texts, "encoding_format": "float"}
        for wait in (*WAITS, None):
            asked = ""
            try:
                response = httpx2.post(
                    f"{self.url}/embeddings", json=body, headers=headers, timeout=TIMEOUT_SECONDS
                )
                if response.is_success:
                    return response.json()
                reason = f"HTTP {response.status_code} {response.text[:200]}"
                asked = response.headers.get("Retry-After", "")
                is_temporary = response.status_code in (408, 429) or response.status_code >= 500
            except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
                reason = first_line(error)
                is_temporary = isinstance(error, httpx2.TransportError)
            if wait is None or not is_temporary:
                break
            time.sleep(min(MAX_WAIT, float(asked)) if asked.isdecimal() else wait)
        raise EncoderError(f"model '{self.model}' at {self.url}: {reason}")
