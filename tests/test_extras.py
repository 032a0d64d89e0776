"""What installs an extra is said in one way by all errors, and truly by all pages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from guardband.extras import how_to_install

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
SAID = re.compile(r"pip install '(?:guardband|\.)\[[a-z,]+\]'")


def test_errors_name_both_ways_to_install_an_extra() -> None:
    assert how_to_install("ray") == (
        "pip install 'guardband[ray]' (in a checkout: pip install '.[ray]')"
    )


def test_extras_that_the_code_names_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = set(project["optional-dependencies"])
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text()
        assert set(re.findall(r"how_to_install\([\"']([a-z]+)[\"']\)", text)) <= extras, file
        if file.name != "extras.py":
            assert not SAID.search(re.sub(r'""".*?"""', "", text, flags=re.DOTALL)), (
                f"{file}: say how_to_install(extra)"
            )


def test_pages_install_from_a_checkout_until_there_is_a_release() -> None:
    """`pip install guardband` fails until the index has it: a page that says so says since when."""
    for page in PAGES:
        for line in page.read_text().splitlines():
            from_the_index = "pip install guardband" in line or "pip install 'guardband" in line
            says_since_when = "released" in line
            assert says_since_when or not from_the_index, f"{page.relative_to(ROOT)}: {line}"
