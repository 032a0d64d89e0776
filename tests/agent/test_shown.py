"""What notebooks show of agents, fleets and decisions."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd

import guardband as gb
from guardband.html_tables import html_table

VOID = {"br", "hr", "img"}


class Balanced(HTMLParser):
    """Collects text, and sees that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Balanced:
    found = Balanced()
    found.feed(html)
    found.close()
    assert not found.open
    assert found.seen <= {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    return found


def test_everything_in_a_table_is_escaped() -> None:
    evil = "<script>alert('x')</script>&"
    found = read(html_table(evil, [(evil, evil)], head=(evil, evil), note=evil))
    assert found.text.count(evil) == 6


def test_tables_have_no_colours_of_their_own() -> None:
    text = html_table("caption", [("a", 1)], head=("x", "y"))
    assert "background" not in text
    assert "color: inherit" in text
    assert "#" not in text


def test_agents_fleets_and_decisions_show_themselves() -> None:
    features = gb.Features(categories={"<b>item": ["a", "b"]})
    fleet = gb.Fleet({"<web>": None, "app": ["intercept"]}, features=features, alpha=(0.1, 0.2))
    offers = pd.DataFrame({"<b>item": ["a", "b"]}, index=["<i>", "two"])
    decision = fleet["<web>"].decide(offers, baseline="<i>")
    shown = read(decision._repr_html_())
    assert "<i> (row 0)" in shown.text
    assert f"{decision.promise}, by {decision.certificate}" in shown.text
    agent = read(fleet["<web>"]._repr_html_()).text
    assert {"Agent '<web>'", "guard-ucb", "0.1, 0.2", "3: from <b>item"} <= set(agent)
    table = read(fleet._repr_html_()).text
    assert {"Fleet of 2 tasks", "<web>", "app", "decisions"} <= set(table)
    assert any("0 poolings." in each for each in table)


def test_what_is_not_there_is_not_a_number() -> None:
    free = gb.Agent(dim=2, algorithm="dis-lin-ucb")
    assert "nan" not in free.decide(np.eye(2), baseline=0)._repr_html_()
    assert "no constraint" in free._repr_html_()
    trial = gb.Agent(dim=2, alpha=0.1, trial_budget=3.0)
    assert "budget left" in trial.decide(np.eye(2), baseline=0)._repr_html_()
