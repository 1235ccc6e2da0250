"""Writes an evaluation as a self-contained HTML page, with everything needed to reproduce it."""

from semsearch.evaluation.report.page import check_report, create_folder, write_report
from semsearch.evaluation.report.provenance import Provenance, provenance

__all__ = ["Provenance", "check_report", "create_folder", "provenance", "write_report"]
