"""The provenance of an evaluation: command, versions, machine, seeds."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from semsearch.evaluation.datasets import RetrievalSet, StsSet
from semsearch.evaluation.statistics import PERMUTATIONS, RESAMPLES, SEED
from semsearch.version import __version__

#: Packages that affect the results.
PACKAGES = (
    "torch",
    "transformers",
    "sentence-transformers",
    "openvino",
    "faiss-cpu",
    "numpy",
    "scipy",
    "ir-measures",
)
DIGEST_CHARACTERS = 16


class Provenance(NamedTuple):
    """How results were computed."""

    command: str
    facts: dict[str, str]  #: by name


def provenance(arguments: Sequence[str], fingerprints: Mapping[str, str]) -> Provenance:
    """The provenance of an evaluation in this process.

    Args:
        arguments: the command line after ``semsearch``.
        fingerprints: of the encoders, by spec.
    """
    facts = {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        "processor": _processor(),
        "cores": str(_cores()),
        "system": platform.platform(),
        "semsearch": __version__,
        "Python": sys.version.split()[0],
        **{package: _version(package) for package in PACKAGES},
        "bootstrap": f"{RESAMPLES:,} resamples, seed {SEED}",
        "randomisation test": f"{PERMUTATIONS:,} permutations, seed {SEED}",
        **{
            f"fingerprint of {spec}": digest[:DIGEST_CHARACTERS]
            for spec, digest in fingerprints.items()
        },
    }
    return Provenance(shlex.join(["semsearch", *arguments]), facts)


def contents_digest(dataset: StsSet | RetrievalSet) -> str:
    """A digest of the data of an evaluation: the beginning of the SHA-256 of its JSON."""
    contents = json.dumps([*dataset[1:4]], ensure_ascii=True).encode()
    return hashlib.sha256(contents).hexdigest()[:DIGEST_CHARACTERS]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The name of the processor; Python's own is empty or coarse on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _cores() -> int:
    """The number of cores available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
