"""Semantic search for sentences and passages.

    from semsearch import Document, Index

    with Index.create("indexes/notes") as index:
        index.add([Document("n1", "The cat dozed on the radiator."), ...])
        hits = index.search("a sleeping pet", k=3)

The names below are loaded on first use, so that importing the package is cheap.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False  # read as typing.TYPE_CHECKING by type checkers; typing imports slowly
if TYPE_CHECKING:
    from semsearch.corpus import Corpus
    from semsearch.encoders import load_encoder, load_reranker
    from semsearch.encoders.given import encoder_from
    from semsearch.errors import SemsearchError
    from semsearch.explore.clusters import Cluster, Clustering, cluster
    from semsearch.explore.export import Exported, export_index
    from semsearch.explore.pairs import Pair, similar_pairs
    from semsearch.index import Index
    from semsearch.indexing.batch import Summary
    from semsearch.indexing.writer import IndexWriter
    from semsearch.protocols import Encoder, Reranker
    from semsearch.records import Document, Hit, Hits, Passage, SearchMode
    from semsearch.search.options import SearchOptions
    from semsearch.storage.interface import IndexInfo

__all__ = [
    "Cluster",
    "Clustering",
    "Corpus",
    "Document",
    "Encoder",
    "Exported",
    "Hit",
    "Hits",
    "Index",
    "IndexInfo",
    "IndexWriter",
    "Pair",
    "Passage",
    "Reranker",
    "SearchMode",
    "SearchOptions",
    "SemsearchError",
    "Summary",
    "__version__",
    "cluster",
    "encoder_from",
    "export_index",
    "load_encoder",
    "load_reranker",
    "similar_pairs",
]

_MODULES = {
    "Cluster": "explore.clusters",
    "Clustering": "explore.clusters",
    "Corpus": "corpus",
    "Document": "records",
    "Encoder": "protocols",
    "Exported": "explore.export",
    "Hit": "records",
    "Hits": "records",
    "Index": "index",
    "IndexInfo": "storage.interface",
    "IndexWriter": "indexing.writer",
    "Pair": "explore.pairs",
    "Passage": "records",
    "Reranker": "protocols",
    "SearchMode": "records",
    "SearchOptions": "search.options",
    "SemsearchError": "errors",
    "Summary": "indexing.batch",
    "cluster": "explore.clusters",
    "encoder_from": "encoders.given",
    "export_index": "explore.export",
    "load_encoder": "encoders",
    "load_reranker": "encoders",
    "similar_pairs": "explore.pairs",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'semsearch' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(f"semsearch.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
