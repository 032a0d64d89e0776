"""Turn the formulas of pages into MathML, which browsers show by themselves; for `make docs`.

    python docs/mathematics.py build/pages

In the repository a formula is LaTeX in a block of the kind `math`, which GitHub renders. The site
has no network and no script for it: here blocks become MathML before the pages are built, and
indices in the text of such pages, as in c_t or F_{t-1}, are set low.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from latex2mathml.converter import convert

FORMULA = re.compile(r"^```math\n(.*?)^```$", re.M | re.S)
# What is not text: code, and where links lead.
APART = re.compile(r"(^```.*?^```$|<math .*?</math>|`[^`]*`|\]\([^)]*\))", re.M | re.S)
INDEX = re.compile(r"(?<=[^\W_])_(?:\{([^}]*)\}|(\w+))|(?<=[\u0302\u22c6'\u2016\u27e7])_(\w+)")
# Over what a maximum is taken goes below it, as in print: beside it, "max y" reads as one word.
BOUND = re.compile(r"<msub>(<mo>(?:max|min|sup|inf)</mo>)((?:(?!<msub>).)*?)</msub>")
UNKNOWN = re.compile(r"\\[a-zA-Z]+|<mi>&</mi>")


def rendered(text: str) -> str:
    """Return a page with its formulas as MathML."""
    shown = FORMULA.sub(lambda block: f'<div class="formula">{mathml(block[1])}</div>', text)
    parts = APART.split(shown)
    parts[::2] = [INDEX.sub(_low, part) for part in parts[::2]]
    return "".join(parts)


def _low(index: re.Match[str]) -> str:
    return f"<sub>{index[1] or index[2] or index[3]}</sub>"


def mathml(latex: str) -> str:
    """Return one formula as MathML in one line, or raise ValueError for what cannot be shown."""
    made = convert(" ".join(latex.split()), display="block")
    made = BOUND.sub(r"<munder>\1\2</munder>", made)
    if left := UNKNOWN.findall(made):
        raise ValueError(f"cannot be shown: {', '.join(left)} in {latex}")
    return made


def main() -> None:
    """Render all pages of a folder in place."""
    for path in Path(sys.argv[1]).rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        if FORMULA.search(text):
            path.write_text(rendered(text), encoding="utf-8")


if __name__ == "__main__":
    main()
