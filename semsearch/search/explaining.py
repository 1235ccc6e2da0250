"""Explanations of hits: matched words and the sentence nearest to the query."""

from __future__ import annotations

from semsearch.corpus.texts import split_sentences
from semsearch.protocols import Encoder, Matrix
from semsearch.records import Hit, Hits
from semsearch.search.queries import ParsedQuery
from semsearch.storage.interface import Reader


def explained(
    state: Reader, encoder: Encoder | None, query: ParsedQuery, vector: Matrix | None, hits: Hits
) -> Hits:
    """The hits with the query words that they contain, and their sentences nearest to the query.

    There are no sentences without an encoder and the query's vector.
    """
    found = state.matched_words(query.words or query.text, [hit.passage.id for hit in hits])
    sentences = _nearest_sentences(hits, encoder, vector) if encoder and vector is not None else {}
    explained_hits = (
        hit._replace(
            explanation=hit.explanation._replace(
                words=tuple(found.get(hit.passage.id, ())), sentence=sentences.get(hit.passage.id)
            )
        )
        for hit in hits
        if hit.explanation is not None
    )
    return Hits(hits.query, explained_hits, reranked=hits.reranked)


def _nearest_sentences(hits: Hits, encoder: Encoder, vector: Matrix) -> dict[int, tuple[int, int]]:
    """Characters [start, end) of the document, by passage id."""
    spans = [(hit.passage.id, span) for hit in hits for span in _sentences(hit)]
    if not spans:
        return {}
    texts = {hit.passage.id: hit.text for hit in hits}
    starts = {hit.passage.id: hit.passage.start for hit in hits}
    cosines = encoder.encode_documents([texts[name][slice(*span)] for name, span in spans]) @ vector
    best: dict[int, tuple[float, tuple[int, int]]] = {}
    for (name, (start, end)), cosine in zip(spans, cosines.tolist(), strict=True):
        if name not in best or cosine > best[name][0]:
            best[name] = cosine, (starts[name] + start, starts[name] + end)
    return {name: span for name, (_, span) in best.items()}


def _sentences(hit: Hit) -> list[tuple[int, int]]:
    """The character ranges of a passage's sentences, without surrounding white space."""
    spans = []
    place = 0
    for sentence in split_sentences(hit.text):
        start = hit.text.index(sentence, place)
        place = start + len(sentence)
        if text := sentence.strip():
            inner = start + sentence.index(text)
            spans.append((inner, inner + len(text)))
    return spans
