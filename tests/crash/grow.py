"""Add documents to an index until something fails, and print the error as JSON.

Usage: grow.py INDEX [LARGEST-FILE-IN-BYTES]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import workers

from semsearch import Document, Index
from semsearch.errors import SemsearchError


def documents(number):
    """The documents of one run, all different."""
    return [
        Document(f"{number}-{item}", f"{workers.WORDS[item % 12]} {number} {item}. " * 20)
        for item in range(300)
    ]


def main() -> None:
    path = Path(sys.argv[1])
    if len(sys.argv) > 2:
        import resource  # which Windows lacks

        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    committed = 0
    result = {"error": None, "message": None}
    try:
        with Index.open(path) as index:
            start = len(index)
            for number in range(start, start + 20):
                with index.writer() as writer:
                    writer.upsert(documents(number))
                committed += 300
    except SemsearchError as error:
        result = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(result | {"committed": committed}))  # noqa: T201


if __name__ == "__main__":
    main()
