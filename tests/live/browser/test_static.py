"""The dashboard's files: unchanged, well formed, and from nowhere else."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from live.browser.canned import STATIC

VENDOR = STATIC / "vendor" / "uplot"
OWN = sorted(p for p in STATIC.rglob("*") if p.is_file() and "vendor" not in p.parts)
SCRIPTS = [p for p in OWN if p.suffix == ".js"]
NODE = shutil.which("node")


def test_vendored_files_are_those_that_were_published() -> None:
    lines = (VENDOR / "SHA256SUMS").read_text().split("\n")
    sums = {name: digest for digest, name in (line.split("  ") for line in lines if line)}
    files = {p.name for p in VENDOR.iterdir()} - {"SHA256SUMS"}
    assert set(sums) == files == {"LICENSE", "uPlot.iife.min.js", "uPlot.min.css"}
    for name, digest in sums.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
    assert "MIT" in (VENDOR / "LICENSE").read_text()
    assert "(v1.6.32)" in (VENDOR / "uPlot.iife.min.js").read_text()[:80]


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_nothing_comes_from_elsewhere(path: Path) -> None:
    found = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text()))
    assert found <= {"http://www.w3.org"}  # the name of SVG; nothing is loaded by it


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.files: list[str] = []
        self.inline: list[str] = []
        self.ids: list[str] = []
        self._in: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.files += [v for k, v in given.items() if k in ("src", "href") and v]
        self.inline += [k for k in given if k == "style" or k.startswith("on")]
        self.ids += [given["id"] or ""] if "id" in given else []
        if tag in ("script", "style") and "src" not in given:
            self.inline.append(tag)


def test_the_page_holds_no_inline_code_and_names_files_that_exist() -> None:
    page = _Page()
    page.feed((STATIC / "index.html").read_text())
    assert page.inline == []
    assert page.files
    for name in page.files:
        assert (STATIC / name).is_file(), name


def test_scripts_ask_for_elements_and_modules_that_exist() -> None:
    page = _Page()
    page.feed((STATIC / "index.html").read_text())
    made = {"why-title"}  # by a script
    for path in SCRIPTS:
        text = path.read_text()
        assert set(re.findall(r'byId\("([\w-]+)"\)', text)) <= set(page.ids) | made, path.name
        for name in re.findall(r'from "\./([\w.-]+)"', text):
            assert (STATIC / name).is_file(), name
        assert "innerHTML" not in text  # names come from other people


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: p.name)
def test_scripts_are_well_formed(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.with_suffix(".mjs").name
    copy.write_bytes(path.read_bytes())
    result = subprocess.run(
        [str(NODE), "--check", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert result.returncode == 0, result.stderr


def ask(tmp_path: Path, expressions: list[str]) -> list[object]:
    """What the functions of words.js return."""
    (tmp_path / "words.mjs").write_bytes((STATIC / "words.js").read_bytes())
    program = (
        f"import * as w from './words.mjs';console.log(JSON.stringify([{','.join(expressions)}]));"
    )
    (tmp_path / "ask.mjs").write_text(program)
    run = subprocess.run(
        [str(NODE), "ask.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    answers: list[object] = json.loads(run.stdout)
    return answers


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_numbers_in_words(tmp_path: Path) -> None:
    cases = {
        "w.count(9999)": "9,999",
        "w.count(12345)": "12.3 k",
        "w.count(2.5e6)": "2.5 M",
        "w.count(null)": "–",
        "w.signed(-0.0123)": "−0.012",
        "w.signed(0.5, 1)": "+0.5",
        "w.margin(0.0123)": "+0.012",
        "w.margin(0.00042)": "+0.0004",
        "w.margin(-0.000004)": "−4e-6",
        "w.percent(0.0123)": "1.2 %",
        "w.percent(1)": "100 %",
        "w.percent(undefined)": "–",
        "w.chance(1e-3)": "0.1 %",
        "w.span(3.4)": "3 s",
        "w.span(360)": "6 min",
        "w.span(7200)": "2.0 h",
        "w.span(864000)": "10 days",
        "w.sentence('no news')": "No news.",
    }
    assert ask(tmp_path, list(cases)) == list(cases.values())


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    gate = '{"gauges": {"lambda_min": 2, "lambda_required": 5, "own_n": 100, "foreign_n": 300}}'
    cases = {
        'w.violations({"gauges": {}, "counters": {"learned": 4}})': "–",
        'w.violations({"gauges": {}, "counters": {}})': "0",
        'w.violations({"gauges": {"margin_min": 0}, "counters": {}})': "0",
        'w.violations({"gauges": {"margin_min": -1e-9}, "counters": {}})': "≥ 1",
        f"w.stillNeeded({gate})": 600,
        f"w.stillNeeded({gate.replace('5,', '1,')})": None,
        "w.stillNeeded({gauges: {}})": None,
    }
    assert ask(tmp_path, list(cases)) == list(cases.values())


def colours(scheme: str) -> dict[str, str]:
    """The named colours of style.css."""
    text = (STATIC / "style.css").read_text()
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    dark = dark.split("}\n}")[0]
    found = re.compile(r"--([\w-]+): (#[0-9a-f]{6});")
    return dict(found.findall(light)) | (dict(found.findall(dark)) if scheme == "dark" else {})


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2: at least 4.5 for text."""
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(scheme: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    known = colours(scheme)
    pairs = [(ink, ground) for ink in ("ink", "faint") for ground in ("page", "panel")]
    pairs += [(level, f"{level}-back") for level in ("good", "wait", "look", "bad")]
    pairs += [(level, "panel") for level in ("good", "wait", "look", "bad", "accent")]
    pairs += [("ink", f"{level}-back") for level in ("wait", "look", "bad")]
    pairs += [("on-accent", "accent"), *((f"agent-{i}", "page") for i in range(8))]
    weak = {p: round(contrast(known[p[0]], known[p[1]]), 2) for p in pairs}
    assert {p: c for p, c in weak.items() if c < 4.5} == {}
