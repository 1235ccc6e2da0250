"""Speed and quality of int8 with all-MiniLM-L6-v2, with different treatments of outliers.

Each recipe quantises the model anew. Its rate is measured in turn with that of bf16 (fp32 where the
processor lacks it) on the first 60 words of film descriptions, with the model loaded; its losses
are those that the gate of `--precision int8` measures. `both, as shipped` is that option's recipe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.shared.corpora import film_beginnings
from scripts.shared.frame import Table, data_folder, in_turn, new_parser, report, spread
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino.models import converted_model
from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.outliers import RECIPE, Recipe
from semsearch.encoders.parity import Parity, measure_parity, read_held_out
from semsearch.encoders.quantization import MixedPrecisionModel, quantize
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

    def __init__(self, encoder: MixedPrecisionModel) -> None:
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


def main() -> None:
    """Measure each recipe, and print the table."""
    parser = new_parser("scripts/bench/quantization", __doc__, repeats=5)
    parser.add_argument("--texts", type=int, default=1500, help="news-length texts (1,500)")
    parser.add_argument("--recipe", action="append", choices=list(RECIPES), help="only this one")
    arguments = parser.parse_args()
    texts = list(film_beginnings(data_folder()))
    texts = texts[:: max(1, len(texts) // arguments.texts)][: arguments.texts]
    model = converted_model("encoder", find_model("minilm"))
    exact = model.text_model(Precision.FP32)
    floats = float_precision(Precision.AUTO)
    plain = model.text_model(floats)
    reference = Remembered(MixedPrecisionModel(exact, exact))
    held_out = read_held_out()

    def losses(parity: Parity) -> dict[str, float | str]:
        return {
            "top 10": f"{parity.agreement:.4f} ± {parity.agreement_error:.4f}",
            "STSb": f"{parity.sts:.2f}",
            "nDCG@10": f"{parity.ndcg:.2f}",
            "cosine": f"{parity.mean_cosine:.4f}",
            "least": f"{parity.least_cosine:.4f}",
        }

    heading = f"texts/s, x {floats.value}"
    parity = measure_parity(held_out, reference, MixedPrecisionModel(plain, plain))
    rows = [{"": floats.value, heading: None, **losses(parity)}]
    for name in arguments.recipe or RECIPES:
        with TemporaryDirectory() as draft:
            quantize(model, Path(draft), RECIPES[name])
            quantized = model._replace(folder=Path(draft)).text_model(floats)
            plain.encode(texts), quantized.encode(texts)  # not measured
            systems = {floats.value: plain, name: quantized}

            def rate(system: str, systems: Mapping[str, TextModel] = systems) -> float:
                started = time.perf_counter()
                systems[system].encode(texts)
                return len(texts) / (time.perf_counter() - started)

            rates = in_turn(name, list(systems), arguments.repeats, rate).values()
            ratio = spread([ours / theirs for theirs, ours in zip(*rates, strict=True)])
            parity = measure_parity(held_out, reference, MixedPrecisionModel(plain, quantized))
        rows.append({"": name, heading: ratio, **losses(parity)})
    report(arguments, [Table("int8 documents, float queries", rows)])


if __name__ == "__main__":
    main()
