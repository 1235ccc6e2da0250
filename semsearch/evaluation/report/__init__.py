"""Writes an evaluation as a self-contained HTML page, with everything needed to reproduce it."""

from semsearch.evaluation.report.page import check_report, write_report
from semsearch.evaluation.report.provenance import Provenance, provenance

__all__ = ["Provenance", "check_report", "provenance", "write_report"]
