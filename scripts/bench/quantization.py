"""Speed and quality of int8 with all-MiniLM-L6-v2.

Its rate is measured in turn with that of bf16 (fp32 where the processor lacks it) on the first 60
words of film descriptions, with the model loaded; its losses are those that the gate of
`--precision int8` measures.
"""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.shared.corpora import film_beginnings
from scripts.shared.frame import Table, data_folder, in_turn, new_parser, report, spread
from semsearch.encoders.model_folder import find_model
from semsearch.encoders.openvino.models import converted_model
from semsearch.encoders.openvino.runtime import float_precision
from semsearch.encoders.parity import (
    MixedPrecisionModel,
    Parity,
    measure_parity,
    read_held_out,
)
from semsearch.encoders.quantization import quantize
from semsearch.encoders.specs import Precision


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/bench/quantization", __doc__, repeats=5)
    parser.add_argument("--texts", type=int, default=1500, help="news-length texts (1,500)")
    arguments = parser.parse_args()
    texts = list(film_beginnings(data_folder()))
    texts = texts[:: max(1, len(texts) // arguments.texts)][: arguments.texts]
    model = converted_model("encoder", find_model("minilm"))
    exact = model.text_model(Precision.FP32)
    floats = float_precision(Precision.AUTO)
    plain = model.text_model(floats)
    reference = MixedPrecisionModel(exact, exact)
    held_out = read_held_out()

    def losses(parity: Parity) -> dict[str, float | str]:
        return {
            "top 10": f"{parity.agreement:.4f}",
            "STSb": f"{parity.sts:.2f}",
            "nDCG@10": f"{parity.ndcg:.2f}",
        }

    heading = f"texts/s, x {floats.value}"
    parity = measure_parity(held_out, reference, MixedPrecisionModel(plain, plain))
    rows = [{"": floats.value, heading: None, **losses(parity)}]
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
        parity = measure_parity(held_out, reference, MixedPrecisionModel(plain, systems["int8"]))
    rows.append({"": "int8", heading: ratio, **losses(parity)})
    report(arguments, [Table("int8 documents, float queries", rows)])


if __name__ == "__main__":
    main()
