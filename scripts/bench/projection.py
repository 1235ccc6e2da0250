"""Projects the cost of indexes of ten million to a billion passages from smaller measurements.

Reads `docs/scale.json`: figures of `scripts/bench/scale`, `scripts/bench/codes` and
`scripts/bench/peers`, and those of `scripts/bench/gpu` (H200). Each number in the tables of
`docs/scale.md` is computed here; `--write` puts them there. The price of a machine is an option.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.reproduce.page import replace_section, table

SIZES = (10**7, 10**8, 10**9)
MEBI, GIBI = 2**20, 2**30
MONTH_HOURS = 730

DIMENSION = 384
VECTOR_BYTES = 4 * DIMENSION
#: Memory of a machine that is left to the system.
SYSTEM_GIB = 2
#: A million passages are a segment of Milvus at its default of 1 GB, or one FAISS file of ours.
SEGMENT = 10**6


class Code(NamedTuple):
    """A representation of vectors in memory, and its name in Milvus."""

    name: str
    milvus: str
    code: str | None  #: its name in `scripts/bench/codes`; None for the vector itself
    overhead: int  #: bytes per vector besides its code


#: HNSW32 has 64 links of 4 bytes in its lowest layer; lists have ids of 8 bytes.
CODES = (
    Code("HNSW32, float32", "HNSW", None, 64 * 4),
    Code("HNSW32, SQ8", "HNSW_SQ", "SQ8", 64 * 4),
    Code("IVF, SQ8", "IVF_SQ8", "SQ8", 8),
    Code("IVF, PQ96x4", "SCANN", "PQ96x4fs", 8),
    Code("IVF, RaBitQ", "IVF_RABITQ", "RR384,RaBitQ", 8),
)


class Projection:
    """Numbers for docs/scale.md.

    Args:
        measured: the content of docs/scale.json.
        assumed: the options.
    """

    def __init__(self, measured: dict[str, Any], assumed: argparse.Namespace) -> None:
        self._scale = measured["scale"]
        self._codes = measured["codes"]
        self._rates = measured["texts per second"]
        self._assumed = assumed

    def tables(self) -> dict[str, str]:
        """The Markdown tables, by the names of their sections."""
        return {
            "projection of encoding": self.encoding(),
            "projection of codes": self.codes(),
            "projection of one machine": self.one_machine(),
            "projection of machines": self.machines(),
        }

    def encoding(self) -> str:
        """The time of encoding, by device."""
        ours, plain = (
            self._rates["semsearch, 2 cores"],
            self._rates["sentence-transformers, 2 cores"],
        )
        gpu, plain_gpu = (
            self._rates["semsearch, 1 H200"],
            self._rates["sentence-transformers, 1 H200"],
        )
        devices = {
            f"2 cores, sentence-transformers ({plain}/s, measured)": plain,
            f"2 cores, semsearch ({ours}/s, measured)": ours,
            f"64 cores, semsearch ({32 * ours:,}/s, 32 times that)": 32 * ours,
            f"1 H200, sentence-transformers ({plain_gpu:,}/s, measured)": plain_gpu,
            f"1 H200, semsearch ({gpu:,}/s, measured)": gpu,
            f"8 H200s, semsearch ({8 * gpu:,}/s, 8 times that)": 8 * gpu,
        }
        rows = [
            [device, *(duration(size / rate / 3600) for size in SIZES)]
            for device, rate in devices.items()
        ]
        return table(["", *(f"{size:,}" for size in SIZES)], rows)

    def codes(self) -> str:
        """Memory, and the number of candidates to rerank."""
        rows = []
        for one in CODES:
            per_vector = self.bytes_of(one)
            found = self._codes[one.code] if one.code else None
            depths = ["10" if found is None else depth_text(found, size) for size in SIZES]
            rows.append(
                [
                    f"{one.name} ({one.milvus})",
                    f"{per_vector:,}",
                    *(
                        f"{amount(per_vector * size)}; {depth}"
                        for size, depth in zip(SIZES, depths, strict=True)
                    ),
                ]
            )
        return table(["in memory", "bytes a vector", *(f"{size:,}" for size in SIZES)], rows)

    def bytes_of(self, one: Code) -> int:
        """The bytes of a vector in memory."""
        code = self._codes[one.code]["bytes"] if one.code else VECTOR_BYTES
        return int(code) + one.overhead

    def one_machine(self) -> str:
        """The cost on one machine, extrapolated from a million passages."""
        million = self._scale["1000000"]
        files = 1e6 * (million["SQLite MB"] + million["vectors MB"])
        #: Each figure as a function of the number of millions.
        rows = {
            "load, without encoding": lambda n: duration(n * million["load s"] / 3600),
            "memory of loading": lambda n: amount(self._loaded_bytes(n * SEGMENT)),
            "files": lambda n: amount(n * files),
            "codes in memory": lambda n: amount(n * SEGMENT * self.bytes_of(CODES[3])),
            "semantic query (√n)": lambda n: milliseconds(math.sqrt(n) * million["p50 ms"]),
            "BM25, English": lambda n: milliseconds(n * million["p50 bm25 english ms"]),
            "BM25, all words": lambda n: milliseconds(n * million["p50 bm25 ms"]),
        }
        return table(
            ["", *(f"{size:,}" for size in SIZES)],
            [[name, *(figure(size / SEGMENT) for size in SIZES)] for name, figure in rows.items()],
        )

    def most_loaded(self, gib: float) -> float:
        """The number of passages that can be loaded in a memory, less the system's part."""
        none, one = (self._loaded_bytes(count) for count in (0, 1))
        return ((gib - SYSTEM_GIB) * GIBI - none) / (one - none)

    def _loaded_bytes(self, count: float) -> float:
        """The peak memory of loading: the snapshot, with codes, and the largest overhead."""
        beside = max(
            one["load MiB"] * MEBI - 1e6 * one["vectors MB"] for one in self._scale.values()
        )
        return count * self._scale["1000000"]["vectors MB"] + beside

    def machines(self) -> str:
        """Milvus: query nodes, their throughput and their cost."""
        assumed = self._assumed
        million = self._scale["1000000"]
        # FAISS's queries, and the building of usearch's graph, kept two cores busy.
        per_segment = 2 / million["FAISS q/s"]
        graph = 2 * million["usearch load s"]
        rows = []
        for one in (CODES[1], CODES[4]):
            for size in SIZES:
                memory = size * self.bytes_of(one)
                nodes = math.ceil(memory / (assumed.machine_gib * GIBI * assumed.filled))
                seconds = size / SEGMENT * per_segment
                machines = nodes * assumed.machine_hour * MONTH_HOURS
                stored = size / SEGMENT * million["SQLite MB"] / 1000 * assumed.gigabyte_month
                is_graph = one.name.startswith("HNSW")
                rows.append(
                    [
                        f"{one.milvus}, {size:,}",
                        f"{nodes:,}",
                        duration(size / SEGMENT * graph / 3600) if is_graph else "",
                        milliseconds(seconds * 1000),
                        f"{significant(nodes * assumed.machine_cores / seconds)}/s",
                        f"${significant(machines + stored)}",
                        f"${significant(2 * machines + stored)}",
                    ]
                )
        head = ["query nodes", "core time to build", "core time of a query", "queries"]
        return table(["", *head, "a month", "with two replicas"], rows)


def depth_text(found: dict[str, Any], size: int) -> str:
    """The number of candidates, measured or extrapolated."""
    if str(size) in found["depth"]:
        return f"{found['depth'][str(size)]:,}"
    middle, low, high = found["ahead"][str(size)]
    if round(low) == round(high):
        return f"≈ {middle:,.0f}"
    return f"≈ {significant(middle)} ({significant(low)} to {significant(high)})"


def significant(value: float) -> str:
    """A number with two significant figures."""
    if value <= 0:
        return "0"
    digits = 1 - math.floor(math.log10(value))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:.2g}"


def duration(hours: float) -> str:
    """A duration in minutes, hours or days."""
    if hours < 1:
        return f"{significant(hours * 60)} min"
    return f"{significant(hours)} h" if hours < 72 else f"{significant(hours / 24)} days"


def milliseconds(value: float) -> str:
    """A time in milliseconds or seconds."""
    return f"{significant(value)} ms" if value < 1000 else f"{significant(value / 1000)} s"


def amount(size: float) -> str:
    """A number of bytes in MB, GB or TB."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9)):
        if size >= factor:
            return f"{significant(size / factor)} {unit}"
    return f"{significant(size / 1e6)} MB"


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench/projection",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--measured", type=Path, default=Path("docs/scale.json"), metavar="FILE")
    add("--write", type=Path, metavar="FILE", help="the page whose tables to replace")
    add("--machine-gib", type=float, default=64.0, metavar="N", help="memory of a machine (64)")
    add("--machine-cores", type=int, default=8, metavar="N", help="its cores (8)")
    add(
        "--machine-hour",
        type=float,
        default=0.5,
        metavar="$",
        help="its price per hour (0.5)",
    )
    add(
        "--gigabyte-month",
        type=float,
        default=0.023,
        metavar="$",
        help="price of the object store (0.023)",
    )
    add("--filled", type=float, default=0.7, metavar="S", help="share of the memory in use (0.7)")
    return parser.parse_args(arguments)


def main() -> None:
    """Print the tables, or write them."""
    arguments = parsed()
    measured = json.loads(arguments.measured.read_text("utf-8"))
    for name, text in Projection(measured, arguments).tables().items():
        if arguments.write:
            replace_section(arguments.write, name, text, "scripts/bench/projection")
        else:
            print(f"{name}\n\n{text}\n")


if __name__ == "__main__":
    main()
