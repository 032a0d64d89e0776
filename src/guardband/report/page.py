"""One HTML file that needs nothing else: light and dark, on screen and on paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["code", "page", "picture", "section", "tabulate"]

# Pictures are drawn for a light page; turning lightness over and hues back suits them to a dark
# one. Paper is always light.
STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5f6670; --page: #ffffff;
  --card: #f6f7f9; --line: #dcdfe4; --mark: #0b62a4; --alarm: #b3261e; }
@media screen and (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #9aa2ad; --page: #15171a; --card: #1e2125; --line: #34383e;
    --mark: #6cb6ef; --alarm: #ff8a80; }
  figure svg { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 2.5rem 1.25rem 4rem; background: var(--page);
  color: var(--ink); font: 1rem/1.55 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .8rem; }
p.run { color: var(--soft); margin: .3rem 0 0; }
.verdict { font-size: 1.1rem; margin: 1.4rem 0 0; padding: .9rem 1.2rem;
  background: var(--card); border-left: .3rem solid var(--mark); }
ul.verdict { padding-left: 2.2rem; }
ul.verdict.alarm { border-color: var(--alarm); }
p.note { color: var(--soft); font-size: .88rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .38rem .9rem; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top; }
td:first-child { min-width: 9rem; }
th { font-size: .85rem; font-weight: 600; color: var(--soft); }
.numbers { width: 100%; }
.numbers th + th, .numbers td + td { text-align: right; white-space: nowrap; }
tr.quiet { color: var(--soft); }
tr.alarm { color: var(--alarm); font-weight: 600; }
.pictures { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(30rem, 100%), 1fr)); }
figure { margin: 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .3rem; }
pre { background: var(--card); padding: .9rem 1.1rem; overflow-x: auto; font-size: .88rem; }
@media print {
  @page { margin: 15mm; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2 { break-after: avoid; }
  tr { break-inside: avoid; }
  pre { white-space: pre-wrap; }
}
"""


def page(title: str, parts: Iterable[str], *, style: str = "") -> str:
    """Return the whole file; parts are HTML, the title is text, `style` adds to the style sheet."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return a section; parts are HTML, the heading is text."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def tabulate(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    kinds: Sequence[str] | None = None,
    numbers: bool = False,
) -> str:
    """Return a table of texts.

    Parameters
    ----------
    head
        The names of the columns; an empty list leaves the head out.
    rows
        The cells.
    kinds
        Per row "", "quiet" or "alarm".
    numbers
        Whether all columns but the first are numbers.
    """
    body = [list(row) for row in rows]
    looks = kinds if kinds is not None else [""] * len(body)
    lines = [f'<div class="wide"><table{" class=numbers" if numbers else ""}>']
    if head:
        lines.append(
            "<thead><tr>" + "".join(f"<th>{escape(c)}</th>" for c in head) + "</tr></thead>"
        )
    lines.append("<tbody>")
    for row, look in zip(body, looks, strict=True):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines.append(f"<tr{f' class={look}' if look else ''}>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def picture(svg: str, caption: str) -> str:
    """Return a figure; the SVG is taken as it is, the caption is text and is read out for it."""
    told = escape(caption)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{told}"', 1)
    return f"<figure>\n{svg}\n<figcaption>{told}</figcaption>\n</figure>"


def code(text: str) -> str:
    """Return lines of code."""
    return f"<pre><code>{escape(text)}</code></pre>"
