"""The site: all pages are in it, every link leads somewhere, and nothing comes from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from live.browser.chromium import opened, started

import guardband as gb

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"


class Page(HTMLParser):
    """What a page loads, where it links to, and which anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.contents: list[str] = []  # those of its links that are in the site's navigation
        self.depth = 0  # of the navigation's lists
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if "src" in given:
            self.loads.append(given["src"])
        if tag == "link":
            self.loads.append(given["href"])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
            if self.depth:
                self.contents.append(given["href"])
        if tag == "nav" and (self.depth or "md-nav--primary" in given.get("class", "")):
            self.depth += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "nav" and self.depth:
            self.depth -= 1


@cache
def page(path: Path) -> Page:
    return Page(path)


@pytest.fixture(scope="module")
def pages() -> list[Path]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    subprocess.run(["make", "docs"], cwd=ROOT, env=clean, check=True, stdout=subprocess.DEVNULL)
    return sorted(SITE.rglob("*.html"))


@pytest.mark.slow
def test_every_page_is_there_and_in_the_contents(pages: list[Path]) -> None:
    contents = {SITE / unquote(link) for link in page(SITE / "index.html").contents}
    written = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/*.md"), ROOT / "CHANGELOG.md"]
    for path in written:
        place = SITE / path.relative_to(ROOT).with_suffix(".html")
        if place.name == "README.html":
            place = place.with_name("index.html")
        assert place in pages
        assert place in contents, path


@pytest.mark.slow
def test_links_and_anchors_lead_somewhere(pages: list[Path]) -> None:
    for path in pages:
        if path.name == "404.html":
            continue  # its links are those of the site's root
        for link in page(path).links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = unquote(link).partition("#")
            file = (path.parent / name).resolve() if name else path
            assert file.exists(), f"{path.relative_to(SITE)} links to {link}"
            if anchor and file.suffix == ".html":
                assert anchor in page(file).anchors, f"{path.relative_to(SITE)} links to {link}"


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(pages: list[Path]) -> None:
    for path in pages:
        assert not [each for each in page(path).loads if re.match("https?:|//", each)], path
    for path in SITE.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", path.read_text()), path


@pytest.mark.slow
def test_formulas_are_shown(pages: list[Path]) -> None:
    text = (SITE / "docs" / "guard-ucb-math.html").read_text()
    assert text.count("<math ") >= 25
    assert "\\frac" not in text
    assert not (SITE / "docs" / "mathematics.py").exists()


@pytest.mark.slow
def test_notebooks_are_shown_with_their_results(pages: list[Path]) -> None:
    text = (SITE / "examples" / "notebook" / "first_agent.html").read_text()
    assert "Decision agent-1" in text


@pytest.mark.slow
def test_the_reference_has_every_public_name(pages: list[Path]) -> None:
    reference = [path for path in pages if path.parent.name == "reference"]
    described = {anchor for path in reference for anchor in page(path).anchors}
    assert {f"guardband.{name}" for name in gb.__all__} <= described


@pytest.mark.slow
def test_search_works_from_a_folder(pages: list[Path]) -> None:
    where = (SITE / "docs" / "glossary.html").as_uri()
    with started() as browser, opened(browser, where) as watched:
        watched.page.keyboard.press("/")
        found = watched.page.locator("a[href*='?h=holdback']")
        watched.page.keyboard.type("holdback")
        found.first.click()
        watched.page.wait_for_url(lambda url: "?h=holdback" in url)  # whichever page is first
        assert watched.page.url.startswith(SITE.as_uri())
        assert watched.page.locator("mark").first.inner_text().lower() == "holdback"


BRIGHTNESS = """(element, property) => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.fillStyle = getComputedStyle(element)[property];  // whichever way it is written
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue] = canvas.getImageData(0, 0, 1, 1).data;
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_dark_for_whoever_wants_it(pages: list[Path], scheme: str) -> None:
    where = (SITE / "docs" / "guard-ucb-math.html").as_uri()  # with formulas, tables and code
    with started() as browser, opened(browser, where, scheme=scheme) as watched:
        body = watched.page.locator("body")
        behind = body.evaluate(f"e => ({BRIGHTNESS})(e, 'backgroundColor')")
        assert (behind < 0.2) if scheme == "dark" else (behind > 0.8)
        for part in ("article p", "article h1", "article math", "article code"):
            letters = watched.page.locator(part).first
            shown = letters.evaluate(f"e => ({BRIGHTNESS})(e, 'color')")
            assert abs(shown - behind) > 0.4, f"{part} is {shown:.2f} on {behind:.2f}"


@pytest.mark.slow
def test_the_first_screens_code_fits_beside_both_columns(pages: list[Path]) -> None:
    """The first blocks of a page that nobody knows yet are read without scrolling."""
    with started() as browser, opened(browser, (SITE / "index.html").as_uri()) as watched:
        code = watched.page.locator("article pre > code")
        wider = code.evaluate_all("all => all.map(each => each.scrollWidth - each.clientWidth)")
        assert wider[:4] == [0] * 4
