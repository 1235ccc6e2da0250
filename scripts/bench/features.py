"""The cells of README's table that need a run: what txtai, Chroma and LanceDB do by themselves.

Document n lies at an angle proportional to n from document 0, so the nearest ones are known; the
texts that a tool encodes are counted.

- update: documents are written twice unchanged; the number of texts encoded again.
- filter: one of 3,000 documents matches, the 1,001st by similarity; the number of hits.
- hybrid: a search by meaning and words, in the open-source package.
- explain: whether there is a method that explains a hit.
- commands: the shell commands that the package installs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

DOCUMENTS = 3_000
#: The only document that matches the filter; 1,000 are nearer to document 0.
WANTED = 1_000
TEXTS = [f"document {n}" for n in range(DOCUMENTS)]
YEARS = [2000 if n == WANTED else 1999 for n in range(DOCUMENTS)]
IDS = [str(n) for n in range(DOCUMENTS)]


class Encoder:
    """Encodes texts that end with a number, and counts them."""

    def __init__(self) -> None:
        self.texts = 0

    def __call__(self, texts: Sequence[str]) -> Any:
        """Unit vectors, one per text."""
        import numpy

        self.texts += len(texts)
        angles = [math.pi / 2 * int(text.split()[-1]) / DOCUMENTS for text in texts]
        return numpy.array([[math.cos(one), math.sin(one)] for one in angles], "float32")

    def again(self, write: Callable[[], object]) -> int:
        """The number of texts encoded when the same data is written a second time."""
        write()
        before = self.texts
        write()
        return self.texts - before


def txtai(folder: Path) -> Mapping[str, object]:
    from txtai import Embeddings

    encoder = Encoder()
    options = {"method": "external", "transform": lambda texts: encoder(texts), "content": True}
    embeddings = Embeddings(options)
    rows = [
        (name, {"text": text, "year": year}, None)
        for name, text, year in zip(IDS, TEXTS, YEARS, strict=True)
    ]
    encoded = encoder.again(lambda: embeddings.upsert(rows))
    query = "select id, score from txtai where similar('document 0'{}) and year = 2000 limit 3"
    both = Embeddings({**options, "hybrid": True})
    both.index(rows[:100])
    return {
        "update": encoded,
        "filter": len(embeddings.search(query.format(""))),
        "filter with 2,000 candidates": len(embeddings.search(query.format(", 2000"))),
        "hybrid": len(both.search("document 0", 3)),
        "explain": hasattr(embeddings, "explain"),
    }


def chroma(folder: Path) -> Mapping[str, object]:
    import chromadb
    from chromadb import K, Knn, Search

    encoder = Encoder()

    class Function(chromadb.EmbeddingFunction):
        def __init__(self) -> None:
            pass

        def __call__(self, input: Any) -> Any:  # noqa: A002 - Chroma's name
            return list(encoder(input))

    settings = chromadb.Settings(anonymized_telemetry=False)
    collection = chromadb.PersistentClient(str(folder), settings).create_collection(
        "texts", embedding_function=Function()
    )
    years = [{"year": year} for year in YEARS]
    encoded = encoder.again(
        lambda: collection.upsert(ids=IDS, documents=TEXTS, metadatas=years)  # type: ignore[arg-type]
    )
    found = collection.query(query_texts=["document 0"], where={"year": 2000}, n_results=3)
    try:
        hybrid = str(collection.search(Search().rank(Knn(query="document 0")).select(K.SCORE)))
    except NotImplementedError as error:
        hybrid = f"no: {error}"
    return {
        "update": encoded,
        "filter": len(found["ids"][0]),
        "hybrid": hybrid,
        "explain": hasattr(collection, "explain"),
    }


def lancedb(folder: Path) -> Mapping[str, object]:
    import lancedb
    from lancedb.embeddings import TextEmbeddingFunction, register
    from lancedb.index import FTS
    from lancedb.pydantic import LanceModel, Vector

    encoder = Encoder()

    @register("counted")
    class Counted(TextEmbeddingFunction):
        def ndims(self) -> int:
            return 2

        def generate_embeddings(self, texts: Any) -> Any:
            return list(encoder([str(text) for text in texts]))

    function = Counted.create()

    class Row(LanceModel):
        id: str
        year: int
        text: str = function.SourceField()
        vector: Vector(2) = function.VectorField()  # type: ignore[valid-type]

    table = lancedb.connect(str(folder)).create_table("texts", schema=Row)
    rows = [
        {"id": name, "text": text, "year": year}
        for name, text, year in zip(IDS, TEXTS, YEARS, strict=True)
    ]
    update = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    encoded = encoder.again(lambda: update.execute(rows))
    query = table.search("document 0", query_type="vector")
    table.create_index("text", config=FTS())
    both = table.search("document 0", query_type="hybrid").limit(3).to_list()
    return {
        "update": encoded,
        "filter": len(query.where("year = 2000").limit(3).to_list()),
        "hybrid": len(both),
        "explain": hasattr(table, "explain"),
    }


def commands(package: str) -> list[str]:
    """The shell commands that a package installs."""
    points = distribution(package).entry_points
    return [point.name for point in points if point.group == "console_scripts"]


PACKAGES = {"txtai": txtai, "chromadb": chroma, "lancedb": lancedb}


def main() -> None:
    for package, check in PACKAGES.items():
        with TemporaryDirectory() as folder:
            found = {**check(Path(folder)), "commands": commands(package)}
        print(f"{package} {distribution(package).version}")
        for name, value in found.items():
            print(f"  {name}: {value}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
