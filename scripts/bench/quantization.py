"""Speed and quality of int8 with all-MiniLM-L6-v2, with different treatments of outliers.

Each recipe quantises the model anew. Its rate is measured in turn with that of bf16 (fp32 where the
processor lacks it) on the first 60 words of film descriptions, with the model loaded; its losses
are those that the gate of `--precision int8` measures. `both, as shipped` is that option's recipe.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scripts.bench.systems import messages
from scripts.shared.corpora import distinct, film_beginnings
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino_models import converted_model
from semsearch.encoders.openvino_runtime import Converted, float_precision
from semsearch.encoders.outliers import RECIPE, Recipe
from semsearch.encoders.parity import Parity, measure_parity, read_held_out
from semsearch.encoders.quantization import Halves, quantize
from semsearch.encoders.specs import Precision
from semsearch.encoders.text_model import TextModel
from semsearch.protocols import Matrix

RECIPES = {
    "all in int8": Recipe(smoothing=None, apart=0),
    "smoothing": RECIPE._replace(apart=0),
    "outliers apart": RECIPE._replace(smoothing=None),
    "both, as shipped": RECIPE,
    "both, alpha 0.5": RECIPE._replace(smoothing=0.5),
    "both, alpha 0.8": RECIPE._replace(smoothing=0.8),
    "smoothing, contractions in floating point": RECIPE._replace(apart=1),
}


class Remembered:
    """An encoder that encodes each set of documents once, for all comparisons."""

    def __init__(self, encoder: Halves) -> None:
        self._encoder = encoder
        self._documents: dict[tuple[str, ...], Matrix] = {}

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of queries."""
        return self._encoder.encode_queries(texts)

    def encode_documents(self, texts: Sequence[str]) -> Matrix:
        """Unit vectors of documents."""
        key = tuple(texts)
        if key not in self._documents:
            self._documents[key] = self._encoder.encode_documents(texts)
        return self._documents[key]


def main() -> int:
    """Measure each recipe, and print the table."""
    arguments = parsed()
    texts = list(distinct(film_beginnings(Path(os.environ["SEMSEARCH_DATA"]))))
    texts = texts[:: max(1, len(texts) // arguments.texts)][: arguments.texts]
    model = converted_model("encoder", find_model("minilm"))
    exact = model.text_model(Precision.FP32)
    floats = float_precision(Precision.AUTO)
    plain = model.text_model(floats)
    reference = Remembered(Halves(exact, exact))
    held_out = read_held_out()
    table = new_table(floats)
    parity = measure_parity(held_out, reference, Halves(plain, plain))
    table.add_row(floats.value, *told([], parity))
    for name in arguments.recipe or RECIPES:
        with tempfile.TemporaryDirectory() as draft:
            quantized = in_int8(model, Path(draft), RECIPES[name]).text_model(floats)
            rates = rates_in_turn(texts, [plain, quantized], arguments.repeats)
            ratios = [ours / theirs for theirs, ours in rates]
            parity = measure_parity(held_out, reference, Halves(plain, quantized))
        table.add_row(name, *told(ratios, parity))
        messages.print(f"{name}: {statistics.median(ratios):.2f}x, {parity}")
    (Console() if sys.stdout.isatty() else Console(width=120)).print(table)
    return 0


def parsed() -> argparse.Namespace:
    """The parsed options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=1500, help="news-length texts (1,500)")
    parser.add_argument("--recipe", action="append", choices=list(RECIPES), help="only this one")
    parser.add_argument("--repeats", type=int, default=5, help="number of rounds (5)")
    arguments = parser.parse_args()
    if not os.environ.get("SEMSEARCH_DATA"):
        parser.error("SEMSEARCH_DATA must name a folder of published data sets")
    return arguments


def in_int8(model: Converted, folder: Path, recipe: Recipe) -> Converted:
    """The model, quantised by a recipe into a folder."""
    quantize(model, folder, recipe)
    return model._replace(folder=folder)


def rates_in_turn(
    texts: Sequence[str], runtimes: Sequence[TextModel], repeats: int
) -> list[list[float]]:
    """Texts a second of each runtime, round by round; the first round is not counted."""
    rounds = []
    for _ in range(repeats + 1):
        rates = []
        for runtime in runtimes:
            started = time.perf_counter()
            runtime.encode(texts)
            rates.append(len(texts) / (time.perf_counter() - started))
        rounds.append(rates)
    return rounds[1:]


def new_table(floats: Precision) -> Table:
    """A table with columns, without rows."""
    table = Table(title="int8 documents, float queries", title_justify="left")
    table.add_column("")
    for heading in (f"texts/s, x {floats.value}", "top 10", "STSb", "nDCG@10", "cosine", "least"):
        table.add_column(heading, justify="right")
    return table


def told(ratios: Sequence[float], parity: Parity) -> list[str]:
    """The cells of one row, without its name."""
    rate = "1"
    if ratios:
        rate = f"{statistics.median(ratios):.2f} ({min(ratios):.2f}..{max(ratios):.2f})"
    agreement = f"{parity.agreement:.4f} ± {parity.agreement_error:.4f}"
    losses = [agreement, f"{parity.sts:.2f}", f"{parity.ndcg:.2f}"]
    return [rate, *losses, f"{parity.mean_cosine:.4f}", f"{parity.least_cosine:.4f}"]


if __name__ == "__main__":
    sys.exit(main())
