"""Writes an evaluation as a self-contained HTML page, with everything needed to reproduce it."""

from semsearch.evaluation.report.ir import write_ir_report
from semsearch.evaluation.report.page import check_report
from semsearch.evaluation.report.provenance import Provenance, provenance
from semsearch.evaluation.report.sts import write_sts_report

__all__ = [
    "Provenance",
    "check_report",
    "provenance",
    "write_ir_report",
    "write_sts_report",
]
