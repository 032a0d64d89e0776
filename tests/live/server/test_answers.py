"""What a summary says in words, for the dashboard and the terminal."""

from __future__ import annotations

from typing import Any

import pytest
from live.browser import canned

from guardband.live.server import words
from guardband.live.server.replies import AgentReply, AnswerReply, SummaryReply


def said(**changes: Any) -> SummaryReply:
    """A summary as the server makes it, from canned facts."""
    return SummaryReply.model_validate(canned.summary(**changes))


def answer(question: str, **changes: Any) -> AnswerReply:
    (found,) = [each for each in said(**changes).answers if each.question == question]
    return found


def agent(**changes: Any) -> AgentReply:
    return said(agents=[canned.agent("home", 1, **changes)]).agents[0]


NUMBERS = {
    "9,999": words.count(9999),
    "12.3 k": words.count(12345),
    "2.5 M": words.count(2.5e6),
    "−0.012": words.signed(-0.0123),
    "+0.5": words.signed(0.5, 1),
    "+0.0004": words.margin(0.00042),
    "−4e-6": words.margin(-0.000004),
    "1.2 %": words.percent(0.0123),
    "100 %": words.percent(1),
    "0.1 %": words.chance(1e-3),
    "3 s": words.span(3.4),
    "6 min": words.span(360),
    "2.0 h": words.span(7200),
    "10 days": words.span(864000),
    "No news.": words.as_sentence("no news"),
    "–": words.count(None),
}


def test_numbers_are_written_as_the_page_writes_them() -> None:
    """The same cases as in tests/live/browser/test_static.py."""
    assert list(NUMBERS) == list(NUMBERS.values())
    assert {words.signed(None), words.percent(None), words.span(None)} == {"–"}
    assert words.margin(0.0123) == "+0.012"


def test_all_is_well() -> None:
    assert [(each.level, each.word) for each in said().answers] == [("good", "Yes")] * 4


def begun(window: str, **gauges: float) -> dict[str, Any]:
    """An agent that has decided, and waits; the space waits for windows, or for rewards."""
    counters = {"decisions": 12, "baseline": 12}
    row = canned.agent("home", 1, counters=counters, n=0, lead_mean=None, lead_halfwidth=None)
    row |= {"sums": {}, "gauges": {"pending": 12.0, **gauges}}
    config = canned.summary()["config"] | {"rewards": {"order": window}}
    return {"agents": [row], "config": config, "lead_mean": None, "lead_halfwidth": None}


def test_what_has_not_started_says_when_it_will() -> None:
    waiting = begun("window", counts_at=canned.NOW + 540.0)
    found = answer("Does it learn?", **waiting)
    assert (found.level, found.word) == ("wait", "Not started")
    assert found.figure == "0 of 12 decisions counted"
    when = "the first counts at 02:22:20 UTC (in 9 min), when its window ends"
    assert found.text == f"Not started: 0 counted, {when}."
    assert said(**waiting).agents[0].notes == [f"not started: 0 counted, {when}"]


def test_where_rewards_count_as_they_come_the_first_one_is_waited_for() -> None:
    found = answer("Does it learn?", **begun("prompt", counts_at=canned.NOW + 540.0))
    assert found.text == "Not started: 0 counted, the first counts when its reward comes."


def test_of_several_tasks_the_one_that_counts_first_is_named() -> None:
    waiting = begun("window", counts_at=canned.NOW + 540.0)
    other = begun("window", counts_at=canned.NOW + 60.0)["agents"][0] | {"task": "mail"}
    waiting["agents"].append(other)
    assert "(in 60 s)" in answer("Does it learn?", **waiting).text
    waiting["agents"].append(canned.agent("similar", 2))
    assert answer("Does it learn?", **waiting).word == "Yes"


def test_what_logs_taught_is_a_start() -> None:
    waiting = begun("window", counts_at=canned.NOW + 540.0)
    waiting["agents"][0]["sums"] = {"logged": 2000.0}
    assert answer("Does it learn?", **waiting).word == "Too early to say"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({}, None),
        ({"lead_mean": None}, "too few rewards"),
        ({"lead_mean": None, "counters": {"untold": 1}}, "baseline reward not reported"),
    ],
)
def test_why_rewards_are_not_judged(changes: dict[str, Any], why: str | None) -> None:
    assert agent(**changes).unjudged == why


def test_figures_come_with_uploads_of_a_smallest_size() -> None:
    config = canned.summary()["config"] | {"sync": {"min_batch": 20}}
    bare = canned.agent("home", 1, lead_mean=None, sums={}, counters={"observed": 50})
    assert said(agents=[bare], config=config).agents[0].unjudged == "with the next upload"


def test_without_a_baseline_reward_it_says_how_to_measure() -> None:
    row = canned.agent("home", 1, lead_mean=None, counters={"decisions": 9, "untold": 1})
    found = answer("Does it earn?", agents=[row], lead_mean=None, lead_halfwidth=None)
    assert (found.word, found.text.split(". ")[0]) == ("Not known", "Baseline reward not reported")
    assert "guardband space set films holdback=0.05" in found.text


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.1, 0.3, "Yes"), (-0.1, 0.3, "Not sure yet"), (-0.3, -0.1, "No")]
)
def test_what_a_holdback_measured_answers_whether_it_earns(
    low: float, high: float, word: str
) -> None:
    uplift = {"mean": (low + high) / 2, "low": low, "high": high, "rounds": 5400}
    config = canned.summary()["config"] | {"holdback": 0.1}
    found = answer("Does it earn?", uplift=uplift, config=config)
    assert found.word == word
    assert "5,400 rewards" in found.text
    assert "One decision in 10 plays the baseline" in found.text


def test_values_and_costs_are_said() -> None:
    sums = {"valued": 10.0, "value": -20.0, "baseline_value": -40.0, "cost": 20.0}
    config = canned.summary()["config"] | {"budget": {"total": 50.0, "horizon": 100}}
    rows = [canned.agent("home", 1, sums=sums)]
    found = said(agents=rows, config=config)
    assert found.agents[0].notes == ["value −2 per decision, baseline −4", "cost 20 of 50"]
    assert found.answers[1].figure == "+2.000 of value over the baseline"


def test_silence_that_means_nothing_happened_is_no_loss() -> None:
    rows = [canned.agent("home", 1, counters={"decisions": 100, "observed": 5, "defaulted": 95})]
    lost = answer("Is the system running?", agents=rows).text
    assert "95 % of the rewards went missing" in lost
    config = canned.summary()["config"] | {"rewards": {"silence": "default"}}
    assert "0 % of the rewards" in answer("Is the system running?", agents=rows, config=config).text


def test_a_reward_with_an_unknown_id_is_no_loss() -> None:
    rows = [canned.agent("home", 1, counters={"decisions": 50, "observed": 50, "orphan": 1})]
    text = answer("Is the system running?", agents=rows).text
    assert "0 % of the rewards went missing. 1 came with an id of no decision." in text


def test_lately_goes_before_all_time() -> None:
    row = canned.agent("home", 1)
    row["gauges"] |= {"learned_recent": 0.25, "conservative_recent": 0.6}
    found = answer("Does it learn?", agents=[row])
    assert (found.word, found.figure) == ("Getting there", "25 % other than the baseline")
