"""Pictures for pages and talks: inline SVG that follows the page, and PNG files."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg", "save_png"]

# What an SVG file needs and a part of an HTML page does not; the only addresses in it are there.
FILE_ONLY = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>| xmlns(:xlink)?=\"[^\"]*\"", re.S)


def inline_svg(figure: Figure, name: str) -> str:
    """Return the figure as an <svg> element for an HTML page.

    Parameters
    ----------
    figure
        The picture.
    name
        Unique on the page; the picture's ids start with it, so that pictures do not share them.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - slow to import

    file = io.StringIO()
    with rc_context({"svg.hashsalt": name}):  # ids are random otherwise
        figure.savefig(file, format="svg", transparent=True)
    svg = FILE_ONLY.sub("", file.getvalue())
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", svg)
    # The page sets its size; the viewBox keeps the proportions.
    return re.sub(r' (width|height)="[\d.]+pt"', "", svg).strip()


def save_png(figure: Figure, path: Path) -> Path:
    """Write the figure, sharp enough for a slide."""
    figure.savefig(path, dpi=200)
    return path
