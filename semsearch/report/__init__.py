"""Writes an evaluation as a self-contained HTML page, with everything needed to reproduce it."""

from semsearch.report.ir import write_ir_report
from semsearch.report.page import check_report
from semsearch.report.provenance import Provenance, provenance
from semsearch.report.sts import write_sts_report

__all__ = [
    "Provenance",
    "check_report",
    "provenance",
    "write_ir_report",
    "write_sts_report",
]
