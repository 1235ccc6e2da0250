"""The headline of Sentence-BERT (Reimers & Gurevych 2019, section 1), on this machine.

Finding the most similar pairs of 10,000 sentences took 65 hours with a cross-encoder on a V100 and
5 seconds with a bi-encoder. Here the bi-encoder is `semsearch pairs`, a whole process from the
shell; the cross-encoder's time is extrapolated from a sample to all pairs. It has the same body
with a randomly initialised head: its scores are meaningless, but take as long.
"""

from __future__ import annotations

import re
import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.shared.corpora import corpus_of, sts_sentences
from scripts.shared.frame import (
    SEMSEARCH,
    Table,
    data_folder,
    in_turn,
    new_parser,
    report,
    run,
    spread,
)

SAMPLE_PAIRS = 1000


def main() -> None:
    """Measure, and print the table."""
    parser = new_parser("scripts/reproduce/headline", __doc__)
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--precision", choices=["fp32", "bf16", "int8"], default="bf16")
    arguments = parser.parse_args()
    with TemporaryDirectory() as folder:
        sentences = islice(sts_sentences(data_folder()), arguments.sentences)
        corpus = corpus_of("sentences", sentences, Path(folder))

        def pairs(precision: str) -> tuple[float, float, float]:
            """Seconds of encoding, of the search, and of the whole process."""
            done = run([*SEMSEARCH, "pairs", corpus.file, "--precision", precision])
            encoding, search = re.findall(r"(?:encoded|compared) in ([\d.]+) s", done.errors)
            return float(encoding), float(search), done.seconds

        pairs(arguments.precision)  # converts the model
        [runs] = in_turn("pairs", [arguments.precision], arguments.repeats, pairs).values()
    encoding, search, whole = map(spread, zip(*runs, strict=True))
    count = len(corpus.texts) * (len(corpus.texts) - 1) // 2
    hours = count / cross_encoder_rate(corpus.texts) / 3600
    rows = [
        {"": f"semsearch pairs, {arguments.precision}, whole process", "time": f"{whole} s"},
        {"": "  encoding", "time": f"{encoding} s"},
        {"": "  search", "time": f"{search} s"},
        {"": f"cross-encoder, from {SAMPLE_PAIRS:,} pairs", "time": f"{hours:,.1f} hours"},
    ]
    report(arguments, [Table(f"{len(corpus.texts):,} sentences, {count:,} pairs", rows)])


def cross_encoder_rate(sentences: list[str]) -> float:
    """Pairs a second of a cross-encoder with the same body, in sentence-transformers."""
    from sentence_transformers import CrossEncoder
    from transformers.utils import logging

    from semsearch.encoders.model_folder import find_model

    logging.set_verbosity_error()
    model = CrossEncoder(str(find_model("minilm").path), num_labels=1, device="cpu")
    step = max(1, len(sentences) // SAMPLE_PAIRS)
    shuffled = sentences[::step][:SAMPLE_PAIRS]
    pairs = list(zip(shuffled, shuffled[1:] + shuffled[:1], strict=True))
    model.predict(pairs[:64], show_progress_bar=False)
    started = time.perf_counter()
    model.predict(pairs, show_progress_bar=False)
    return len(pairs) / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
