"""Small tables for notebooks: what `_repr_html_` returns.

They have no colours of their own, so that they can be read on light and dark pages alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

CELL = "text-align: left; padding: 0.1em 0.8em 0.1em 0; vertical-align: top"
LINE = "border-bottom: 1px solid currentColor"


def html_table(
    caption: str,
    rows: Iterable[Sequence[object]],
    *,
    head: Sequence[object] = (),
    note: str = "",
) -> str:
    """Return a table in HTML; everything in it is escaped.

    Parameters
    ----------
    caption
        What it is about.
    rows
        The cells of each row; the first one is its heading.
    head
        The headings of the columns; none: there are none.
    note
        A sentence below it.
    """
    lines = [f'<div><p style="margin: 0.3em 0"><strong>{escape(caption)}</strong></p>']
    # Pages without a doctype give tables a colour of their own.
    lines.append('<table style="border-collapse: collapse; color: inherit">')
    if head:
        cells = "".join(_cell("th", each, "col", f"; {LINE}") for each in head)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for first, *others in rows:
        cells = "".join(_cell("td", each) for each in others)
        lines.append(f"<tr>{_cell('th', first, 'row', '; white-space: nowrap')}{cells}</tr>")
    lines.append("</tbody></table>")
    if note:
        lines.append(f'<p style="margin: 0.3em 0">{escape(note)}</p>')
    return "\n".join([*lines, "</div>"])


def _cell(kind: str, value: object, scope: str = "", style: str = "") -> str:
    of = f' scope="{scope}"' if scope else ""
    return f'<{kind}{of} style="{CELL}{style}">{escape(str(value))}</{kind}>'
