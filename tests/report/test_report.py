import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from report.handmade import BASELINE, CONSTRAINED, FREE, SHUT, compare, series
from rich.console import Console

import guardband as gb
from guardband.problems import SyntheticA
from guardband.report import inline_svg, table, write_report
from guardband.report.rerun import rerun_code
from guardband.report.words import listed, number, percent


def printed(results, width=80):
    file = io.StringIO()
    Console(file=file, width=width).print(table(results))
    return file.getvalue()


class TestTable:
    def test_fits_and_shows_what_matters(self):
        text = printed(compare(SHUT, FREE, BASELINE))
        assert max(map(len, text.splitlines())) <= 80
        for part in ("302 ± 25", "held back", "100 %", "0.700 +40 %", "seed 7", "alpha 0.3"):
            assert part in text

    def test_fits_with_long_names_and_large_numbers(self):
        long = series(
            "disc-ucb (alpha=0.3, gate=none, mix=action)", [1.2e6, 1.3e6], expected=[12345, 23456]
        )
        text = printed(compare(long, FREE))
        assert max(map(len, text.splitlines())) <= 80
        assert "1,250,000 ±" in text
        assert "17,900" in text
        assert "…" not in text

    def test_names_are_not_markup(self):
        assert "[red]x" in printed(compare(series("[red]x", [1, 2])))

    def test_what_was_not_measured_is_a_dash(self):
        free = series("dis-lin-ucb", [50, 51], expected=np.nan)
        (line,) = [x for x in printed(compare(free, alpha=None)).splitlines() if "dis-lin" in x]
        assert " – " in line

    def test_counts_what_means_something(self):
        """A frozen error makes psi'theta nobody's expectation: what was drawn counts there."""
        found = compare(series("guard-ucb", [-5, -6], expected=[3, 3], realised=[7, 7]))
        text = " ".join(printed(found).split())
        assert "−5.5 ± 6.4 3 0 %" in text
        assert "in expectation" in text
        assert "best on average; what was drawn can be better: negative regret." in text
        found.settings["problem"] = {"nature": "frozen", "psi_noise": 0.1}
        text = " ".join(printed(found).split())
        assert "−5.5 ± 6.4 7 0 %" in text
        assert "as drawn" in text
        assert "looks best by the features agents are given; those are inexact here" in text

    def test_an_interval_of_nothing_but_rounding_is_zero(self):
        assert "5 ± 0 " in printed(compare(series("baseline", [5, 5 + 1e-12])))

    def test_says_where_features_are_drawn_anew(self):
        found = compare(FREE, problem="movielens")
        found.settings["problem"] = {"nature": "fresh"}
        assert "movielens, fresh · 2 agents" in printed(found)


class Reader(HTMLParser):
    """Notes tags that were not closed in order, ids, and what a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids, self.fetched = [], [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href", "xlink:href") and not value.startswith(("#", "data:")):
                self.fetched.append(value)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "made" / "anew"
    evil = series("<script>&free", [50, 51], expected=[4, 6])
    path = write_report(compare(SHUT, evil, BASELINE), folder, title="A & <b>", command="run <x>")
    assert path == folder / "report.html"
    return folder


@pytest.fixture(scope="module")
def html(folder):
    return (folder / "report.html").read_text(encoding="utf-8")


class TestReport:
    def test_writes_everything(self, folder):
        assert {file.name for file in folder.iterdir()} == {
            *("report.html", "regret.png", "violations.png", "conservative.png", "reward.png"),
            *("summary.csv", "agents.csv", "curves.csv", "settings.json"),
        }
        assert json.loads((folder / "settings.json").read_text())["settings"]["seed"] == 7

    def test_is_self_contained(self, html):
        reader = Reader()
        reader.feed(html)
        assert reader.fetched == []
        assert not re.search(r"https?://|@import|url\((?!#)", html)

    def test_is_well_formed(self, html):
        reader = Reader()
        reader.feed(html)
        assert reader.wrong == []
        assert reader.open == []
        assert len(reader.ids) == len(set(reader.ids)) > 0

    def test_names_and_titles_are_text(self, html):
        assert "<script" not in html
        assert "<b>" not in html
        assert "&lt;script&gt;&amp;free" in html
        assert "<title>A &amp; &lt;b&gt;</title>" in html
        assert "run &lt;x&gt;" in html

    def test_the_verdict_comes_first_then_the_table_then_the_pictures(self, html):
        parts = (
            "disc-ucb never left the baseline",
            "<h2>Summary",
            "<svg",
            "<h2>Settings",
            "<h2>Run it again",
        )
        places = [html.index(part) for part in parts]
        assert places == sorted(places)
        assert html.count("<svg") == 4

    def test_says_where_it_comes_from(self, html):
        for part in ("abc123, with changes that were not committed", "guardband 0.x", "seed=7"):
            assert part in html

    def test_light_dark_and_print(self, html):
        assert "screen and (prefers-color-scheme: dark)" in html
        assert "@media print" in html

    def test_a_broken_promise_is_marked(self, tmp_path):
        broken = series("disc-ucb", [200, 202], settings=CONSTRAINED, expected=[0, 1])
        html = write_report(compare(broken), tmp_path).read_text(encoding="utf-8")
        assert '<ul class="verdict alarm"><li>disc-ucb broke the promise' in html
        assert "<tr class=alarm><td>disc-ucb</td>" in html

    def test_without_violations_there_is_no_picture_of_them(self, tmp_path):
        free = series("dis-lin-ucb", [50, 51], expected=np.nan)
        write_report(compare(FREE), tmp_path)
        html = write_report(compare(free, alpha=None), tmp_path).read_text(encoding="utf-8")
        assert html.count("<svg") == 3
        assert "Violations were not counted" in html
        assert not (tmp_path / "violations.png").exists()


class TestAgain:
    def test_the_code_gives_the_same_numbers(self):
        algorithms = [
            gb.DiscUCB(0.3, gate="gap", feature_bound=1.1),
            gb.DiscUCBUnknown((0.2, 0.3), feature_bound=1.1),
            gb.DisLinUCB(share=False, feature_bound=1.1),
            gb.algorithms.Baseline(),
        ]
        problem = SyntheticA(agents=2, reward_std=0.2)
        first = gb.simulate(problem, algorithms, rounds=50, trials=2, seed=3, alpha=[0.1, 0.2])
        names = {}
        exec(rerun_code(first), names)
        for one, other in zip(first.series, names["results"].series, strict=True):
            assert one.label == other.label
            assert one.settings == other.settings
            np.testing.assert_array_equal(one.regret, other.regret)
            np.testing.assert_array_equal(one.violations_expected, other.violations_expected)

    def test_what_cannot_be_written_down_is_left_open(self):
        own = series("mine", [1, 2], settings={"gap": "array(2, 3)"})
        code = rerun_code(compare(own, replace(own, algorithm="disc-ucb")))
        compile(code, "again", "exec")
        assert "problem = ...  # 'tabular', as it was given" in code
        assert "    ...,  # 'mine'" in code
        assert "gb.algorithms.DiscUCB(gap=...)," in code

    def test_rounding_errors_are_not_printed(self):
        own = series("disc-ucb", [1, 2], settings={"feature_bound": 3.1999999999999997})
        assert "feature_bound=3.2)" in rerun_code(compare(own))
        own = series("disc-ucb", [1, 2], settings={"alpha": (0.1 + 0.2, 0.1)})
        assert "alpha=(0.3, 0.1))" in rerun_code(compare(own))


class TestWords:
    @pytest.mark.parametrize(
        ("value", "told"),
        [
            (0.0, "0"),
            (1234.5, "1,234"),
            (99.97, "100"),
            (0.5, "0.5"),
            (12.345, "12.3"),
            (-3.0, "−3"),
            (4e-5, "4.0e−05"),
            (float("nan"), "–"),
        ],
    )
    def test_number(self, value, told):
        assert number(value) == told

    @pytest.mark.parametrize(
        ("share", "told"),
        [
            (0, "0 %"),
            (1, "100 %"),
            (0.99999, "> 99.9 %"),
            (1e-5, "< 0.1 %"),
            (0.2917, "29.2 %"),
            (-0.03, "−3 %"),
        ],
    )
    def test_percent(self, share, told):
        assert percent(share) == told

    def test_listed(self):
        assert listed(["a"]) == "a"
        assert listed(["a", "b"]) == "a and b"
        assert listed(["a", "b", "c"]) == "a, b and c"
        assert listed(list("abcdef")) == "a, b, c and 3 others"


def test_the_same_picture_is_the_same_text():
    """Pages can be compared: nothing in a picture is drawn at random."""
    figures = [drawn_figure() for _ in range(2)]
    first, second = (inline_svg(figure, "a") for figure in figures)
    assert first == second
    assert 'id="a-' in first


def drawn_figure() -> Figure:
    figure = Figure()
    figure.subplots().plot([0, 1], [1, 0], "o-")  # markers and clips have ids of their own
    return figure
