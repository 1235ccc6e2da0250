"""An evaluation as one HTML page that can be read, printed, kept and repeated."""

from semsearch.report.folder import check_report
from semsearch.report.ir import write_ir_report
from semsearch.report.provenance import Provenance, provenance
from semsearch.report.sts import write_sts_report

__all__ = [
    "Provenance",
    "check_report",
    "provenance",
    "write_ir_report",
    "write_sts_report",
]
