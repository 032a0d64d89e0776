import re
from html.parser import HTMLParser

import pandas as pd
import pytest
from lab.handmade import gathered, result, smoke

from guardband.lab.panel import Claim
from guardband.lab.panel_result import PanelResult
from guardband.lab.panels import PANELS
from guardband.lab.report import curves_table, write_panel, write_report
from guardband.sim.provenance import versions


def outcome(name, results, claims=None):
    panel, options = PANELS[name], smoke()
    judged = panel.claims(options, results) if claims is None else claims
    return PanelResult(
        panel=panel,
        options=options,
        results=results,
        claims=tuple(judged),
        seconds=2.0,
        agent_rounds=3000,
    )


@pytest.fixture(scope="module")
def outcomes():
    return [
        outcome("1a", gathered(PANELS["1a"].runs(smoke()))),
        outcome("1c", gathered(PANELS["1c"].runs(smoke()))),
        outcome("toy", {}),
    ]


@pytest.fixture(scope="module")
def folder(outcomes, tmp_path_factory):
    place = tmp_path_factory.mktemp("report") / "new"
    for each in outcomes:
        write_panel(each, place)
    assert (
        write_report(outcomes, place, command="guardband reproduce <all>") == place / "index.html"
    )
    return place


class Reader(HTMLParser):
    """Notes tags that were not closed in order, ids, links, and what a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.ids, self.links, self.fetched = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "br"):
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name == "href" and tag == "a":
                self.links.append(value)
            if name in ("src", "srcset") or (name == "href" and tag == "link"):
                self.fetched.append(value)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def test_the_page_is_well_formed_and_fetches_nothing(folder):
    text = (folder / "index.html").read_text()
    reader = Reader()
    reader.feed(text)
    assert reader.wrong == reader.open == reader.fetched == []
    assert len(set(reader.ids)) == len(reader.ids)
    assert not re.search(r"https?://", text)
    for link in reader.links:
        there = link[1:] in reader.ids if link.startswith("#") else (folder / link).exists()
        assert there, link


def test_verdicts_come_first_then_the_panels(folder, outcomes):
    text = (folder / "index.html").read_text()
    places = [text.index(f'id="panel-{o.panel.name}"') for o in outcomes]
    assert text.index("<h2>Verdicts</h2>") < places[0]
    assert places == sorted(places)
    for each in outcomes:
        for claim in each.claims:
            assert text.count(claim.text.replace("'", "&#x27;")) == 2  # above, and in its panel
    assert "makes no claim about this panel" in text


def test_what_every_panel_tells(folder):
    text = (folder / "index.html").read_text()
    for part in (
        "seed 0",
        "3,000 agent-rounds in 2.0 seconds",
        "1,500 per second",
        "guardband reproduce &lt;all&gt;",
        "numba",
        "Gate as printed",
        "fig:1 in the paper",
        "nothing was tuned",
        "This page is about panels 1a, 1c, toy.",
    ):
        assert part.lower() in text.lower(), part


def test_a_verdict_is_a_symbol_and_a_word(tmp_path):
    claims = [Claim(f"c{h}", f"says {h}", h, "7 < 8") for h in (True, False, None)]
    claims.append(Claim("idle", "says nothing", True, "", vacuous=True))
    made = outcome("1a", {"a": result("a", regret=[1, 2])}, claims)
    text = write_report([made], tmp_path, command="x").read_text()
    for symbol, word in (("✓", "holds"), ("✗", "does not hold"), ("?", "inconclusive")):
        assert f'<span class="symbol">{symbol}</span>{word}<' in text
    assert '<span class="symbol">∅</span>holds vacuously<' in text
    assert "<b>1</b>hold vacuously" in text
    assert "<b>1</b>hold<" in text
    assert "7 &lt; 8" in text
    assert "<b>4</b>claims" in text


def test_files_of_every_panel(folder, outcomes):
    for each in outcomes:
        name = each.panel.name
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (folder / f"{name}.svg").read_text()
        table = pd.read_csv(folder / f"{name}.csv")
        assert list(table) == ["label", "round", "metric", "mean", "low", "high"]
        assert set(table["label"]) == set(each.results)


def test_curves_have_mean_and_interval():
    """Regret 10 and 14 at the end: mean 12, half-width 12.706 * 2.828 / 1.414 = 25.412."""
    table = curves_table({"a": result("a", regret=[10, 14])})
    last = table[(table["metric"] == "regret") & (table["round"] == 100)].iloc[0]
    assert last["mean"] == 12
    assert (last["low"], last["high"]) == pytest.approx((12 - 25.4124, 12 + 25.4124), abs=1e-3)
    assert curves_table({}).empty


def test_tables_are_short_and_have_all_sums():
    """A curve has 50 of its 200 rounds, of hundreds of runs fewer; what is not drawn its sum."""
    one = result("a", rounds=1000, regret=[10, 14], regret_expected=[1, 3])
    table = curves_table({"a": one})
    rounds = table[table["metric"] == "regret"]["round"]
    assert (len(rounds), rounds.min(), rounds.max()) == (50, 5, 1000)
    (expected,) = table[table["metric"] == "regret_expected"].itertuples()
    assert (expected.round, expected.mean) == (1000, 2)
    assert {"sync_rounds", "messages_sent", "numbers_sent"} <= set(table["metric"])
    many = curves_table({str(i): one for i in range(250)})
    per_run = many[many["metric"] == "regret"].groupby("label")["round"]
    assert (per_run.count() == 4).all()
    assert (per_run.max() == 1000).all()


def test_every_panel_tells_its_versions(folder, outcomes):
    """Numpy, numba and guardband stand in the note of each panel, and once for all of them."""
    text = (folder / "index.html").read_text()
    for what in ("guardband", "numpy", "numba", "python"):
        assert text.count(f"{what} {versions()[what]}") == len(outcomes) + 1


def test_panels_from_before_stay_and_are_linked(outcomes, tmp_path):
    """`reproduce all`, then `reproduce 1a` in the same folder."""
    for each in outcomes:
        write_panel(each, tmp_path)
    write_report(outcomes, tmp_path, command="x")
    (tmp_path / "mine.csv").write_text("no panel: it has no picture")
    text = write_report(outcomes[:1], tmp_path, command="x").read_text()
    assert "This page is about panel 1a." in text
    assert "Earlier panels in this folder" in text
    reader = Reader()
    reader.feed(text)
    assert reader.wrong == reader.open == []
    for link in ("1c.png", "1c.svg", "1c.csv", "toy.csv"):
        assert link in reader.links
        assert (tmp_path / link).exists()
    assert "mine.csv" not in text
    assert "#panel-1c" not in reader.links


def test_a_page_of_a_stopped_command_says_what_is_missing(outcomes, tmp_path):
    text = write_report(outcomes[:1], tmp_path, command="x", missing=["2b", "3a"]).read_text()
    assert "The command was stopped before it had finished 2b, 3a." in text
