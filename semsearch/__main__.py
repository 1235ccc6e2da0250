"""``python -m semsearch`` is the same as ``semsearch``."""

from semsearch.cli import main

main(prog_name="semsearch")
