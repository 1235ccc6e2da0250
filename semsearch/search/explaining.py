"""Explanations of hits: matched words and the sentence nearest to the query."""

from __future__ import annotations

from semsearch.protocols import Encoder, Matrix
from semsearch.records import Hit, Hits
from semsearch.search.queries import Wanted
from semsearch.stores.protocol import StoreState
from semsearch.texts import split_sentences


def explained(
    hits: Hits, state: StoreState, query: Wanted, encoder: Encoder | None, vector: Matrix | None
) -> Hits:
    """The hits with the words that they have of the query, and their nearest sentences.

    Args:
        hits: with an explanation of where they stood.
        state: of the index.
        query: what was asked.
        encoder: that of the space; None where no vectors were searched.
        vector: that of the query.
    """
    found = state.matched_words(
        query.words or query.text, query.required, [hit.chunk.id for hit in hits]
    )
    sentences = _nearest_sentences(hits, encoder, vector) if encoder and vector is not None else {}
    explained_hits = (
        hit._replace(
            explanation=hit.explanation._replace(
                words=tuple(found.get(hit.chunk.id, ())), sentence=sentences.get(hit.chunk.id)
            )
        )
        for hit in hits
        if hit.explanation is not None
    )
    return Hits(hits.query, explained_hits, reranked=hits.reranked)


def _nearest_sentences(hits: Hits, encoder: Encoder, vector: Matrix) -> dict[int, tuple[int, int]]:
    """By chunk id, characters [start, end) of the document."""
    spans = [(hit.chunk.id, span) for hit in hits for span in _sentences(hit)]
    if not spans:
        return {}
    texts = {hit.chunk.id: hit.text for hit in hits}
    starts = {hit.chunk.id: hit.chunk.start for hit in hits}
    cosines = encoder.encode_documents([texts[name][slice(*span)] for name, span in spans]) @ vector
    best: dict[int, tuple[float, tuple[int, int]]] = {}
    for (name, (start, end)), cosine in zip(spans, cosines.tolist(), strict=True):
        if name not in best or cosine > best[name][0]:
            best[name] = cosine, (starts[name] + start, starts[name] + end)
    return {name: span for name, (_, span) in best.items()}


def _sentences(hit: Hit) -> list[tuple[int, int]]:
    """Where the sentences of a passage stand in it, without the white space around them."""
    spans = []
    place = 0
    for sentence in split_sentences(hit.text):
        start = hit.text.index(sentence, place)
        place = start + len(sentence)
        if text := sentence.strip():
            inner = start + sentence.index(text)
            spans.append((inner, inner + len(text)))
    return spans
