"""The provenance of an evaluation: command, versions, machine, seeds."""

from __future__ import annotations

import os
import platform
import re
import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from semsearch import __version__
from semsearch.evaluation.statistics import PERMUTATIONS, RESAMPLES, SEED

#: Packages that affect the results.
PACKAGES = (
    *("torch", "transformers", "sentence-transformers", "openvino", "faiss-cpu", "numpy", "scipy"),
    "ir-measures",
)


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
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "semsearch": __version__,
        "Python": platform.python_version(),
        **{package: _version(package) for package in PACKAGES},
        "bootstrap": f"{RESAMPLES:,} resamples, seed {SEED}",
        "randomisation test": f"{PERMUTATIONS:,} permutations, seed {SEED}",
    }
    for spec, digest in fingerprints.items():
        facts[f"fingerprint of {spec}"] = digest[:16]
    return Provenance(shlex.join(["semsearch", *arguments]), facts)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """The name of the processor; Python's own is empty or coarse on Linux."""
    file = Path("/proc/cpuinfo")
    text = file.read_text("utf-8") if file.exists() else ""
    named = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()
