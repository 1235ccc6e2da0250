"""The programs that scripts/bench/peers compares: what a user of each tool would write.

    python scripts/bench/one_peer.py PEER index CORPUS.csv DIR
    python scripts/bench/one_peer.py PEER query DIR TEXT
    python scripts/bench/one_peer.py PEER warm DIR QUERIES.txt

Each encodes with all-MiniLM-L6-v2 in batches of 32, ranks by cosine and keeps its index on disk.
Imports stand in the functions: a program pays for its own tool alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

HITS = 10
BATCH = 32
#: Queries that are asked before the clock runs: the first ones still allocate.
UNMEASURED = 5


class Answer(NamedTuple):
    """A document that was found."""

    document_id: str
    score: float
    text: str


Search = Callable[[str], list[Answer]]


class Peer(NamedTuple):
    """A tool: how it makes an index of texts in a folder, and how it opens one."""

    index: Callable[[Sequence[str], Path], None]
    open: Callable[[Path], Search]


def model_path() -> str:
    """The folder of the weights that all of them use."""
    from semsearch.encoders.model_folder import find_model

    return str(find_model("minilm").path)


def script_index(texts: Sequence[str], folder: Path) -> None:
    import faiss
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(model_path(), device="cpu")
    vectors = model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)
    folder.mkdir(parents=True)
    faiss.write_index(index, str(folder / "vectors.faiss"))
    (folder / "texts.json").write_text(json.dumps(list(texts)), "utf-8")


def script_open(folder: Path) -> Search:
    import faiss
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(model_path(), device="cpu")
    index = faiss.read_index(str(folder / "vectors.faiss"))
    texts = json.loads((folder / "texts.json").read_text("utf-8"))

    def search(query: str) -> list[Answer]:
        scores, rows = index.search(model.encode([query], normalize_embeddings=True), HITS)
        return [
            Answer(str(row), float(score), texts[row])
            for row, score in zip(rows[0], scores[0], strict=True)
            if row >= 0
        ]

    return search


def txtai_index(texts: Sequence[str], folder: Path) -> None:
    from txtai import Embeddings

    embeddings = Embeddings(path=model_path(), content=True, encodebatch=BATCH, gpu=False)
    embeddings.index((str(row), text, None) for row, text in enumerate(texts))
    embeddings.save(str(folder))


def txtai_open(folder: Path) -> Search:
    from txtai import Embeddings

    embeddings = Embeddings()
    embeddings.load(str(folder))

    def search(query: str) -> list[Answer]:
        found = embeddings.search(query, HITS)
        return [Answer(hit["id"], hit["score"], hit["text"]) for hit in found]

    return search


def chroma_index(texts: Sequence[str], folder: Path) -> None:
    client = _chroma_client(folder)
    collection = client.create_collection(
        "texts",
        embedding_function=_chroma_embedding(),
        configuration={"hnsw": {"space": "cosine"}},
    )
    step = client.get_max_batch_size()
    for start in range(0, len(texts), step):
        part = list(texts[start : start + step])
        collection.add(ids=[str(start + row) for row in range(len(part))], documents=part)


def chroma_open(folder: Path) -> Search:
    collection = _chroma_client(folder).get_collection(
        "texts", embedding_function=_chroma_embedding()
    )

    def search(query: str) -> list[Answer]:
        found = collection.query(query_texts=[query], n_results=HITS)
        ids, distances, documents = found["ids"], found["distances"], found["documents"]
        return [
            Answer(name, 1 - distance, text)
            for name, distance, text in zip(ids[0], distances[0], documents[0], strict=True)
        ]

    return search


def _chroma_client(folder: Path):
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(folder), settings)


def _chroma_embedding():
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    return SentenceTransformerEmbeddingFunction(model_path(), normalize_embeddings=True)


def lancedb_index(texts: Sequence[str], folder: Path) -> None:
    import lancedb
    import pyarrow
    from lancedb.embeddings import EmbeddingFunctionConfig, get_registry

    function = (
        get_registry()
        .get("sentence-transformers")
        .create(name=model_path(), normalize=True, trust_remote_code=False)
    )
    vector = pyarrow.list_(pyarrow.float32(), function.ndims())
    text = pyarrow.string()
    table = lancedb.connect(str(folder)).create_table(
        "texts",
        schema=pyarrow.schema({"id": text, "text": text, "vector": vector}),
        embedding_functions=[
            EmbeddingFunctionConfig(vector_column="vector", source_column="text", function=function)
        ],
    )
    table.add([{"id": str(row), "text": text} for row, text in enumerate(texts)])


def lancedb_open(folder: Path) -> Search:
    import lancedb

    table = lancedb.connect(str(folder)).open_table("texts")

    def search(query: str) -> list[Answer]:
        found = table.search(query).distance_type("cosine").limit(HITS).to_list()
        return [Answer(row["id"], 1 - row["_distance"], row["text"]) for row in found]

    return search


def ours_index(texts: Sequence[str], folder: Path) -> None:
    raise SystemExit("`semsearch index` is what is measured")


def ours_open(folder: Path) -> Search:
    from semsearch import Retriever

    retriever = Retriever.open(folder)

    def search(query: str) -> list[Answer]:
        hits = retriever.search(query, HITS)
        return [Answer(hit.document_id, hit.score, hit.text) for hit in hits]

    return search


PEERS = {
    "ours": Peer(ours_index, ours_open),
    "script": Peer(script_index, script_open),
    "txtai": Peer(txtai_index, txtai_open),
    "chroma": Peer(chroma_index, chroma_open),
    "lancedb": Peer(lancedb_index, lancedb_open),
}


def main() -> int:
    """Do what was asked for, with one tool."""
    parser = argparse.ArgumentParser(description="One program of scripts/bench/peers.")
    parser.add_argument("peer", choices=PEERS)
    actions = parser.add_subparsers(dest="action", required=True)
    index = actions.add_parser("index")
    index.add_argument("corpus", type=Path)
    index.add_argument("folder", type=Path)
    query = actions.add_parser("query")
    query.add_argument("folder", type=Path)
    query.add_argument("text")
    warm = actions.add_parser("warm")
    warm.add_argument("folder", type=Path)
    warm.add_argument("queries", type=Path)
    arguments = parser.parse_args()
    peer = PEERS[arguments.peer]
    if arguments.action == "index":
        with arguments.corpus.open(encoding="utf-8", newline="") as stream:
            peer.index([row["text"] for row in csv.DictReader(stream)], arguments.folder)
    elif arguments.action == "query":
        for answer in peer.open(arguments.folder)(arguments.text):
            print(f"{answer.score:.3f}\t{answer.document_id}\t{answer.text}")
    else:
        queries = arguments.queries.read_text("utf-8").splitlines()
        print(json.dumps(timed(peer.open(arguments.folder), queries)))
    return 0


def timed(search: Search, queries: Sequence[str]) -> dict[str, object]:
    """The median seconds of one query, and what each of them found."""
    for query in queries[:UNMEASURED]:
        search(query)
    seconds, found = [], []
    for query in queries:
        start = time.perf_counter()
        answers = search(query)
        seconds.append(time.perf_counter() - start)
        found.append([answer.document_id for answer in answers])
    return {"median_seconds": statistics.median(seconds), "found": found}


if __name__ == "__main__":
    sys.exit(main())
