"""Counts the words that have no vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from threading import Lock

from semsearch.records import Coverage

#: Beyond so many different unknown words, the rarer half of them is forgotten.
REMEMBERED = 100_000
SHOWN = 10


class WordCount:
    """A count that several threads may add to; it takes bounded memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._words = 0
        self._unknown = 0
        self._unknown_words: Counter[str] = Counter()

    def add(self, words: Mapping[str, int], unknown: Collection[str]) -> None:
        """Add the words of some texts with how often they occur."""
        missing = {word: words[word] for word in unknown}
        with self._lock:
            self._words += sum(words.values())
            self._unknown += sum(missing.values())
            self._unknown_words.update(missing)
            if len(self._unknown_words) > REMEMBERED:
                self._unknown_words = Counter(
                    dict(self._unknown_words.most_common(REMEMBERED // 2))
                )

    def coverage(self) -> Coverage:
        """What was counted until now."""
        with self._lock:
            most = sorted(self._unknown_words.items(), key=lambda item: (-item[1], item[0]))
            shown = tuple(word for word, _ in most[:SHOWN])
            return Coverage(self._words, self._unknown, shown)
