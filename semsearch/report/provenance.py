"""What one needs to know to repeat an evaluation: the command, versions, the machine, seeds."""

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

from semsearch.datasets import RetrievalSet, StsSet
from semsearch.evaluation.intervals import PERMUTATIONS, RESAMPLES, SEED
from semsearch.version import __version__

#: What figures depend on, by the names of the distributions.
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
    """Where figures come from."""

    command: str
    facts: dict[str, str]  #: by what they are about


def provenance(arguments: Sequence[str], fingerprints: Mapping[str, str]) -> Provenance:
    """Of an evaluation that this process has just made.

    Args:
        arguments: what was typed behind ``semsearch``.
        fingerprints: those of the encoders, by spec.
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
    """By which two people can tell that they have the same data: of its SHA-256 as JSON."""
    contents = json.dumps([*dataset[1:4]], ensure_ascii=True).encode()
    return hashlib.sha256(contents).hexdigest()[:DIGEST_CHARACTERS]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Its name; Python's own answer is empty or coarse on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
