"""Tables, verdicts and self-contained reports of results."""

from guardband.report.page import code, page, picture, section, tabulate
from guardband.report.pictures import inline_svg, save_png
from guardband.report.table import table
from guardband.report.verdict import verdict
from guardband.report.words import listed, number, percent
from guardband.report.write import write_report

__all__ = [
    "code",
    "inline_svg",
    "listed",
    "number",
    "page",
    "percent",
    "picture",
    "save_png",
    "section",
    "table",
    "tabulate",
    "verdict",
    "write_report",
]
