"""``python -m semsearch`` is the command line."""

from semsearch.cli import run

run()
