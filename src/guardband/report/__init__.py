"""Tables, verdicts and self-contained reports of results."""

from guardband.report.table import table
from guardband.report.verdict import verdict
from guardband.report.write import write_report

__all__ = ["table", "verdict", "write_report"]
