"""Formulas of the pages can be shown: every one becomes MathML, and indices are set low."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

pytest.importorskip("latex2mathml")
DOCS = Path(__file__).parents[1] / "docs"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mathematics", DOCS / "mathematics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


mathematics = loaded()
FORMULAS = [
    (path.name, block)
    for path in sorted(DOCS.rglob("*.md"))
    for block in mathematics.FORMULA.findall(path.read_text())
]


def test_there_are_formulas() -> None:
    assert len(FORMULAS) >= 25


@pytest.mark.parametrize(("name", "latex"), FORMULAS)
def test_a_formula_can_be_shown(name: str, latex: str) -> None:
    found = ElementTree.fromstring(mathematics.mathml(latex))
    rows = len(found.findall(".//{*}mtr"))
    assert rows == (latex.count("\\\\\n") + 1 if "align" in latex else 0), name


def test_what_cannot_be_shown_is_an_error() -> None:
    for latex in (r"\nonsense x", r"\begin{aligned} a &= b \\ c &= d \end{aligned}"):
        with pytest.raises(ValueError, match="cannot be shown"):
            mathematics.mathml(latex)


def test_indices_are_low_in_text_and_nowhere_else() -> None:
    text = "with c_t, F_{t−1} and ψ_b'θ, but `c_t` and [x](#a_b)\n```text\na_b\n```\n"
    low = "with c<sub>t</sub>, F<sub>t−1</sub> and ψ<sub>b</sub>'θ, but `c_t` and [x](#a_b)"
    assert mathematics.rendered(text).splitlines()[0] == low
    assert "a_b\n```" in mathematics.rendered(text)


def test_what_a_maximum_is_over_stands_below_it() -> None:
    shown = mathematics.mathml(r"\max_y \psi_y + \min_{c, c'} s_c")
    assert "<munder><mo>max</mo><mi>y</mi></munder>" in shown
    assert shown.count("<munder>") == 2
    assert shown.count("<msub>") == 2
    ElementTree.fromstring(shown)
