"""Speed and quality of int8 with all-MiniLM-L6-v2, and the recipe of its quantisation.

Its rate is measured in turn with that of fp32 (and bf16 where the processor has it) on the first 60
words of film descriptions, with the model loaded; its losses are measured on STS Benchmark, SciFact
and, for the ten nearest, Cranfield, which had no part in the choice of the recipe. `--write-recipe`
computes the recipe that comes with the package, from the sample notes, and its agreement with fp32
on SciFact's training claims.
"""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from importlib.resources import files
from itertools import cycle, islice, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
from ir_measures import calc_aggregate, nDCG

from scripts.shared.corpora import film_beginnings
from scripts.shared.frame import Table, data_folder, in_turn, new_parser, report, spread
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino.models import converted_model
from semsearch.encoders.openvino.runtime import Converted, float_precision
from semsearch.encoders.quantization import (
    NEAREST,
    RECIPE_FILE,
    agreement,
    computed_recipe,
    nearest,
    quantize,
    save_recipe,
    shipped_recipe,
)
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import TextModel
from semsearch.evaluation.datasets import load_retrieval_set, read_scifact, read_stsbenchmark
from semsearch.evaluation.statistics import spearman

#: The numbers of sample notes joined into calibration texts, for short and long texts.
JOINED = (1, 1, 2, 4)


#: The inputs of linear layers that stay in floats: the hidden units of MiniLM's first four layers
#: and the output of its last attention (RESULTS.md, int8, tells what each costs).
IN_FLOATS = (3, 7, 11, 15, 21)


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/bench/quantization", __doc__, repeats=5)
    parser.add_argument("--texts", type=int, default=1500, help="news-length texts (1,500)")
    parser.add_argument("--write-recipe", action="store_true", help="write the recipe, and end")
    arguments = parser.parse_args()
    folder = find_model("minilm")
    model = converted_model("encoder", folder)
    if arguments.write_recipe:
        write_recipe(model, folder.fingerprint)
        return
    texts = list(film_beginnings(data_folder()))
    texts = texts[:: max(1, len(texts) // arguments.texts)][: arguments.texts]
    exact = model.text_model(Precision.FP32)
    systems = {"fp32": exact}
    if (floats := float_precision(Precision.FLOAT)) is not Precision.FP32:
        systems[floats.value] = model.text_model(floats)
    scifact, cranfield, pairs = read_scifact(), load_retrieval_set("cranfield"), read_stsbenchmark()
    searched = [
        (list(one.queries.values()), list(one.documents.values())) for one in (scifact, cranfield)
    ]
    wanted = [nearest(exact, exact, *texts) for texts in searched]

    def losses(encoder: TextModel) -> dict[str, float | str]:
        found = [nearest(encoder, encoder, *texts) for texts in searched]
        left, right = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
        gold = numpy.array([pair.gold for pair in pairs])
        ids = list(scifact.documents)
        run = {
            query: {ids[place]: float(NEAREST - rank) for rank, place in enumerate(places)}
            for query, places in zip(scifact.queries, found[0], strict=True)
        }
        ndcg = calc_aggregate([nDCG @ 10], scifact.qrels, run)[nDCG @ 10]
        return {
            "top 10, SciFact": f"{agreement(wanted[0], found[0]):.4f}",
            "Cranfield": f"{agreement(wanted[1], found[1]):.4f}",
            "STSb": f"{100 * spearman((left * right).sum(axis=1), gold):.2f}",
            "nDCG@10": f"{100 * ndcg:.2f}",
        }

    with TemporaryDirectory() as draft:
        recipe, _ = shipped_recipe(folder.fingerprint)
        quantize(model, recipe, Path(draft))
        systems["int8"] = model._replace(folder=Path(draft)).text_model(floats)
        for system in systems.values():
            system.encode(texts)  # not measured

        def rate(name: str) -> float:
            started = time.perf_counter()
            systems[name].encode(texts)
            return len(texts) / (time.perf_counter() - started)

        rates = in_turn("int8", list(systems), arguments.repeats, rate)
        rows = [
            {"": name, "texts/s": spread(rates[name]), **losses(system)}
            for name, system in systems.items()
        ]
    report(arguments, [Table("queries and documents alike", rows)])


def write_recipe(model: Converted, fingerprint: str) -> None:
    """Write the recipe of the bundled model into the package."""
    exact = model.text_model(Precision.FP32)
    recipe = computed_recipe(model, map(exact.features, calibration_texts()))
    for layer in IN_FLOATS:
        recipe.bounds[layer] = (float("nan"), float("nan"))
    scifact = read_scifact("train")
    texts = [*scifact.queries.values()], [*scifact.documents.values()]
    with TemporaryDirectory() as draft:
        quantize(model, recipe, Path(draft))
        encoder = model._replace(folder=Path(draft)).text_model(Precision.FP32)
        found = agreement(nearest(exact, exact, *texts), nearest(encoder, encoder, *texts))
    file = Path(str(files("semsearch.encoders") / RECIPE_FILE))
    save_recipe(recipe, fingerprint, found, file)
    print(f"{file}: top {NEAREST} agreement {found:.4f}")


def calibration_texts() -> Iterator[str]:
    """Texts of several lengths from the sample corpus."""
    sample = (files("semsearch.corpus") / "sample" / "notes.csv").read_text("utf-8")
    notes = (row["text"] for row in csv.DictReader(io.StringIO(sample)))
    joined = (" ".join(islice(notes, count)) for count in cycle(JOINED))
    return takewhile(bool, joined)


if __name__ == "__main__":
    main()
