"""Compares systems: their search results for one text, or their similarities of sentences.

The systems of an index are its embedding spaces and BM25.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, zip_longest
from pathlib import Path
from typing import NamedTuple

from semsearch.encoders.specs import Precision
from semsearch.errors import ArgumentError, check_texts, quoted
from semsearch.evaluation import CosineScorer, load_pair_scorer
from semsearch.evaluation.rankers import System
from semsearch.index import Index
from semsearch.protocols import Matrix
from semsearch.records import Hit, Hits


class Agreement(NamedTuple):
    """The number of documents that two systems both found."""

    left: str
    right: str
    shared: int


class Neighbours(NamedTuple):
    """The top documents for a text, by system."""

    hits: dict[str, Hits]  #: by system
    found_by: Counter[str]  #: the number of systems that found a document, by id

    def agreements(self) -> list[Agreement]:
        """The agreement of each pair of systems."""
        ids = {name: {hit.document_id for hit in hits} for name, hits in self.hits.items()}
        return [
            Agreement(left, right, len(ids[left] & ids[right]))
            for left, right in combinations(ids, 2)
        ]

    def mark(self, hit: Hit) -> str:
        """``*`` if all systems found the document of a hit, ``+`` if more than one did, else none.

        The mark is followed by a space.
        """
        systems = self.found_by[hit.document_id]
        return "* " if systems == len(self.hits) else "+ " if systems > 1 else ""

    def _repr_html_(self) -> str:
        """HTML for notebooks: systems side by side, then their agreement."""
        import pandas

        columns = [[self._cell(hit) for hit in hits] for hits in self.hits.values()]
        cells = pandas.DataFrame(zip_longest(*columns, fillvalue=""), columns=list(self.hits))
        cells.insert(0, "", range(1, len(cells) + 1))
        shared = pandas.DataFrame(self.agreements(), columns=["system", "and", "documents shared"])
        return "".join(table.to_html(index=False) for table in (cells, shared))

    def _cell(self, hit: Hit) -> str:
        title = hit.title or hit.document_id
        return f"{self.mark(hit)}{hit.score:.3f} {title}: {hit.text}"


class SentenceSimilarities(NamedTuple):
    """The similarities of all sentences by one system, shape (sentences, sentences)."""

    system: str
    matrix: Matrix


def compare_neighbours(
    path: str | Path,
    text: str,
    systems: Sequence[str] = (),
    k: int = 10,
    *,
    where: str | None = None,
) -> Neighbours:
    """Search one index with several systems.

    Args:
        path: the index.
        text: the query.
        systems: embedding spaces of the index by name, ``bm25``, ``hybrid:SPACE``; by default all
            spaces, and BM25 if the index has it.
        k: the number of documents per system.
        where: a filter over metadata.

    Raises:
        ArgumentError: there is only one system, one is named twice, or `k` is below 1.
        SpaceError: the space does not exist.
    """
    systems = check_texts("systems", systems)
    with Index.open(path) as index:
        known = index.info().systems
        systems = systems or known
        if len(known) < 2:
            raise ArgumentError(
                f"{index.path} has only one system, its space '{known[0]}'; add another: "
                f"semsearch configure --add-space ENCODER --index {quoted(str(index.path))}"
            )
        if len(set(systems)) < max(2, len(systems)):
            raise ArgumentError("a comparison needs two or more different systems; name them")
        hits = {name: _searched(index, name, text, k, where) for name in systems}
    found_by = Counter(hit.document_id for found in hits.values() for hit in found)
    return Neighbours(hits, found_by)


def compare_sentences(
    sentences: Sequence[str], systems: str | Sequence[str]
) -> list[SentenceSimilarities]:
    """Compare all sentences with each other, by each system.

    Args:
        sentences: two or more.
        systems: one or several encoders (the cosine), or ``cross-encoder:MODEL`` (its score; it
            reads the sentence of the row first).

    Raises:
        ArgumentError: there are fewer than two sentences, or one is empty.
        EncoderError: a system cannot be loaded.
    """
    sentences = check_texts("sentences", sentences)
    if len(sentences) < 2 or not all(sentence.strip() for sentence in sentences):
        raise ArgumentError("a comparison needs two or more sentences, none of them empty")
    compared = []
    for spec in [systems] if isinstance(systems, str) else systems:
        scorer = load_pair_scorer(spec, Precision.AUTO)
        if isinstance(scorer, CosineScorer):
            vectors = scorer.encoder.encode_documents(sentences)
            matrix = vectors @ vectors.T
        else:
            pairs = [(left, right) for left in sentences for right in sentences]
            matrix = scorer.score_pairs(pairs).reshape(len(sentences), -1)
        compared.append(SentenceSimilarities(spec, matrix))
    return compared


def _searched(index: Index, system: str, text: str, k: int, where: str | None) -> Hits:
    mode, space, reranker, run = System.parsed(system)
    if reranker is not None or run is not None:
        raise ArgumentError(
            f"{system} is not a system of an index: use embedding spaces, bm25 or hybrid:SPACE"
        )
    return index.search(text, k, space=space, where=where, mode=mode)
