"""Speed and quality of int8 with all-MiniLM-L6-v2.

Its rate is measured in turn with that of bf16 (fp32 where the processor lacks it) on the first 60
words of film descriptions, with the model loaded; its losses are measured on STS Benchmark and
SciFact, on whose training claims `--precision int8` checks the agreement.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from ir_measures import calc_aggregate, nDCG

from scripts.shared.corpora import film_beginnings
from scripts.shared.frame import Table, data_folder, in_turn, new_parser, report, spread
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino.models import converted_model
from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.quantization import NEAREST, agreement, nearest, quantize
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import TextModel
from semsearch.evaluation.datasets import read_scifact, read_stsbenchmark
from semsearch.evaluation.statistics import spearman


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/bench/quantization", __doc__, repeats=5)
    parser.add_argument("--texts", type=int, default=1500, help="news-length texts (1,500)")
    arguments = parser.parse_args()
    texts = list(film_beginnings(data_folder()))
    texts = texts[:: max(1, len(texts) // arguments.texts)][: arguments.texts]
    model = converted_model("encoder", find_model("minilm"))
    floats = float_precision(Precision.AUTO)
    plain, exact = model.text_model(floats), model.text_model(Precision.FP32)
    scifact, pairs = read_scifact(), read_stsbenchmark()
    asked = [*scifact.queries.values(), *read_scifact("train").queries.values()]
    documents = list(scifact.documents.values())
    wanted = nearest(exact, exact, asked, documents)

    def losses(encoder: TextModel) -> dict[str, float | str]:
        found = nearest(plain, encoder, asked, documents)
        left, right = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
        gold = numpy.array([pair.gold for pair in pairs])
        ids = list(scifact.documents)
        run = {
            query: {ids[place]: float(NEAREST - rank) for rank, place in enumerate(places)}
            for query, places in zip(scifact.queries, found, strict=False)
        }
        ndcg = calc_aggregate([nDCG @ 10], scifact.qrels, run)[nDCG @ 10]
        return {
            "top 10": f"{agreement(wanted, found):.4f}",
            "STSb": f"{100 * spearman((left * right).sum(axis=1), gold):.2f}",
            "nDCG@10": f"{100 * ndcg:.2f}",
        }

    heading = f"texts/s, x {floats.value}"
    rows = [{"": floats.value, heading: None, **losses(plain)}]
    with TemporaryDirectory() as draft:
        quantize(model, Path(draft))
        systems = {
            floats.value: plain,
            "int8": model._replace(folder=Path(draft)).text_model(floats),
        }
        for system in systems.values():
            system.encode(texts)  # not measured

        def rate(name: str) -> float:
            started = time.perf_counter()
            systems[name].encode(texts)
            return len(texts) / (time.perf_counter() - started)

        rates = in_turn("int8", list(systems), arguments.repeats, rate).values()
        ratio = spread([ours / theirs for theirs, ours in zip(*rates, strict=True)])
        rows.append({"": "int8", heading: ratio, **losses(systems["int8"])})
    report(arguments, [Table("int8 documents, float queries", rows)])


if __name__ == "__main__":
    main()
