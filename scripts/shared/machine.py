"""Peak rates of this machine: matrix products and memory traffic, as JSON.

    python -m scripts.shared.machine [--seconds N]

No encoder can be faster than its matrix products at these rates.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import torch

from semsearch.encoders.openvino_runtime import import_openvino, openvino_core

#: Flags of /proc/cpuinfo that matter to matrix products.
FLAGS = (
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_fp16",
    "avx512_vnni",
    "avx_vnni",
    "amx_bf16",
    "amx_int8",
)
MINIMUM_COPIED_BYTES = 512 * 2**20


class Shape(NamedTuple):
    """The shape of a product: (rows x inner) times (inner x columns)."""

    rows: int
    inner: int
    columns: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.inner * self.columns


#: The first is MiniLM's widest layer over a batch of 1,024 tokens. Small shapes come first: a
#: product that is slow on them is not tried on larger ones.
SHAPES = (
    Shape(1024, 384, 1536),
    Shape(1024, 1024, 1024),
    Shape(2048, 2048, 2048),
    Shape(4096, 4096, 4096),
)

Product = Callable[[], object]


def main() -> int:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description="Print the peak rates of this machine as JSON.")
    parser.add_argument("--seconds", type=float, default=20.0, help="approximate duration (20)")
    seconds = parser.parse_args().seconds
    kinds = {
        "fp32": (numpy_products, torch_products(torch.float32), openvino_products("f32")),
        "bf16": (torch_products(torch.bfloat16), openvino_products("bf16")),
        "int8": (int8_products,),
    }
    # Products take four fifths of the time, copies the rest.
    share = 0.8 * seconds / (len(SHAPES) * sum(len(makers) for makers in kinds.values()))
    peaks = {
        kind: max(filter(None, (best_rate(maker, share) for maker in makers)), default=None)
        for kind, makers in kinds.items()
    }
    cpu = cpu_description()
    cpu["gflops"] = {kind: rate and rate / 1e9 for kind, rate in peaks.items()}
    cpu["memory_gigabytes_per_second"] = copy_rate(0.2 * seconds) / 1e9
    print(json.dumps(cpu))
    return 0


def cpu_description() -> dict[str, Any]:
    """The processor's name, the cores that this process may use, and the relevant flags."""
    name, flags = platform.processor() or platform.machine(), set()
    file = Path("/proc/cpuinfo")
    if file.exists():
        fields = dict(
            (part.strip() for part in line.partition(":")[::2])
            for line in file.read_text("utf-8").partition("\n\n")[0].splitlines()
        )
        name = fields.get("model name", name)
        flags = set(fields.get("flags", fields.get("Features", "")).split())
    return {"cpu": name, "cores": cores(), "flags": [flag for flag in FLAGS if flag in flags]}


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def numpy_products(shape: Shape) -> Product:
    chance = numpy.random.default_rng(0)
    left = chance.random((shape.rows, shape.inner), numpy.float32)
    right = chance.random((shape.inner, shape.columns), numpy.float32)
    result = numpy.empty((shape.rows, shape.columns), numpy.float32)
    return lambda: numpy.matmul(left, right, out=result)


def torch_products(dtype: torch.dtype) -> Callable[[Shape], Product]:
    def products(shape: Shape) -> Product:
        left = torch.rand(shape.rows, shape.inner).to(dtype)
        right = torch.rand(shape.inner, shape.columns).to(dtype)
        result = torch.empty(shape.rows, shape.columns, dtype=dtype)
        return lambda: torch.mm(left, right, out=result)

    return products


def openvino_products(number_type: str) -> Callable[[Shape], Product]:
    """Products by OpenVINO: torch and numpy are slow on processors unknown to their libraries."""
    openvino = import_openvino()
    from openvino import opset13 as op

    def products(shape: Shape) -> Product:
        left = op.parameter([shape.rows, shape.inner], numpy.float32)
        right = numpy.random.default_rng(0).random((shape.inner, shape.columns), numpy.float32)
        product = op.matmul(left, op.constant(right), transpose_a=False, transpose_b=False)
        model = openvino.Model([op.result(product)], [left])
        options = {"INFERENCE_PRECISION_HINT": number_type, "PERFORMANCE_HINT": "LATENCY"}
        request = openvino_core().compile_model(model, "CPU", options).create_infer_request()
        request.set_input_tensor(openvino.Tensor(numpy.ones(left.shape, numpy.float32)))
        return request.infer

    return products


def int8_products(shape: Shape) -> Product:
    left = torch.randint(-128, 128, (shape.rows, shape.inner), dtype=torch.int8)
    right = torch.randint(-128, 128, (shape.inner, shape.columns), dtype=torch.int8)
    result = torch.empty(shape.rows, shape.columns, dtype=torch.int32)
    return lambda: torch._int_mm(left, right, out=result)


def best_rate(maker: Callable[[Shape], Product], seconds: float) -> float | None:
    """The highest rate over all shapes, in operations a second; None if torch lacks the product.

    Args:
        maker: returns the product of a shape.
        seconds: the time for one shape.
    """
    best = 0.0
    for shape in SHAPES:
        if best and shape.operations / best > seconds:
            break  # one product would exceed the time for a shape
        try:
            times = list(timings(maker(shape), seconds))
        except (RuntimeError, NotImplementedError, AttributeError):
            return best or None
        best = max(best, shape.operations / min(times))
    return best


def timings(product: Product, seconds: float) -> Iterator[float]:
    """The seconds of each call, repeated for a time after one call that is not counted."""
    product()
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        product()
        now = time.perf_counter()
        yield now - start
        if now > end:
            return


def copy_rate(seconds: float) -> float:
    """Bytes that all cores read and write a second, copying arrays too large for the caches."""
    length = copied_bytes() // cores() // 8
    pairs = [(numpy.ones(length), numpy.zeros(length)) for _ in range(cores())]

    def copy_all() -> None:
        list(threads.map(lambda pair: numpy.copyto(pair[1], pair[0]), pairs))

    with ThreadPoolExecutor(cores()) as threads:  # numpy copies without the GIL
        return 2 * 8 * length * cores() / min(timings(copy_all, seconds))


def copied_bytes() -> int:
    """Twice the largest cache, but at most an eighth of the memory."""
    caches = [
        int(file.read_text().strip().removesuffix("K")) * 1024
        for file in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(max(2 * max(caches, default=0), MINIMUM_COPIED_BYTES), memory // 8)


if __name__ == "__main__":
    sys.exit(main())
