"""Exports the contents of an index to files for other programs."""

from semsearch.exporting.export import ENDINGS, Exported, ExportFormat, export_index
from semsearch.exporting.tables import write_parquet

__all__ = ["ENDINGS", "ExportFormat", "Exported", "export_index", "write_parquet"]
