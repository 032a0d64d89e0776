"""A study as a whole: its JSON, its page, its agent.toml, its advice and the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from studies.examples import ROLES, shop
from typer.testing import CliRunner

import guardband as gb
from guardband import progress
from guardband.agent import read_agent_file
from guardband.cli.app import app
from guardband.kernels._compile import cache_folder
from guardband.studies import make
from guardband.studies.advice import advise
from guardband.studies.expect import Expectation, Prospect, Prospects

KEYS = {"rows", "rewards", "linearity", "settings", "expect", "value", "recommendation"}
LEAVES = Prospect(True, (), 120, 300, 1.5, "the first learned play is at about round 120")
STAYS = Prospect(False, ("price",), None, None, 0.0, "nothing teaches about feature price")
OPEN = Prospect(None, (), None, None, 0.0, "in 4 of 9 worlds nothing but the baseline is certified")
BEST = Prospect(False, (), None, None, 0.0, "the baseline may well be best", settled=True)
UNCLEAR = Prospects(OPEN, OPEN)
GOOD = Prospects(LEAVES, LEAVES)
BAD = Prospects(STAYS, STAYS)


def expectation(strict: Prospects, trial: Prospects = BAD, policy: Prospects = BAD) -> Expectation:
    return Expectation(strict, policy, trial, rounds=1_000, rows=200, budget=3.25)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What to expect has tests of its own; here it takes no time."""

    def expect(logs: Any, **told: Any) -> Expectation:
        assert {"alpha", "rounds", "settings", "seed", "progress"} <= set(told)
        return expectation(Prospects(LEAVES, STAYS))

    monkeypatch.setattr(make, "expect", expect)


@pytest.fixture
def found(quick: None) -> gb.Study:
    return gb.study(shop(), time="when", **ROLES)


def test_the_json_has_what_is_promised(found: gb.Study) -> None:
    data = json.loads(found.to_json())
    assert set(data) == KEYS
    assert set(data["expect"]) == {"strict", "policy", "trial_budget"}
    strict = data["expect"]["strict"]
    assert strict["with_logs"] == {
        "can_leave": True,
        "blocked_by": [],
        "first_learned": 120,
        "half_learned": 300,
        "cost": 1.5,
    }
    assert strict["without_logs"]["first_learned"] is None
    assert strict["without_logs"]["blocked_by"] == ["price"]
    for each in data["value"]:
        assert {"policy", "estimator", "value", "low", "high"} <= set(each)
    assert {each["estimator"] for each in data["value"]} == {"IPS", "SNIPS", "DM", "DR"}
    assert {each["policy"] for each in data["value"]} >= {"logged", "baseline", "learned"}
    assert data["recommendation"] == found.recommendation
    assert data["settings"]["theta_bound"]["sure"]


class Reader(HTMLParser):
    """Collects what a page would load, and whether every element that is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            outside = value is not None and re.match(r"(https?:)?//", value)
            if name in ("src", "href", "xlink:href") and outside:
                self.loaded.append(str(value))
        if tag not in ("meta", "br", "img", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_nothing_else_and_has_all_sections(found: gb.Study) -> None:
    page, reader = found.to_html(), Reader()
    reader.feed(page)
    assert reader.loaded == []
    assert reader.open == []
    assert "http" not in page
    heads = re.findall(r"<h2>(\d)\. ", page)
    assert heads == ["1", "2", "3", "4", "5", "6"]
    assert "@media screen and (prefers-color-scheme: dark)" in page
    for sentence in found.logs.notes:
        assert sentence.split("'")[0] in page
    assert f'<p class="verdict">{escape(found.recommendation)}</p>' in page


def test_rates_are_drawn_over_dates_numbers_or_rows(quick: None) -> None:
    """The picture's texts are in its comments."""
    hours = shop().rename(columns={"when": "$\\when$"})
    assert "<!-- 2026-Jan -->" in gb.study(hours, time="$\\when$", **ROLES).to_html()
    numbers = hours.assign(at=[10 * i for i in range(len(hours))])
    page = gb.study(numbers, time="at", **ROLES).to_html()
    assert "<!-- at -->" in page
    assert "<!-- 1500 -->" in page
    page = gb.study(shop(), **ROLES).to_html()
    assert "<!-- rows, in their order -->" in page
    assert "<!-- 150 -->" in page


def test_who_waits_for_kernels_is_told(
    quick: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(make, "cache_folder", lambda: tmp_path)
    gb.study(shop(), **ROLES)
    assert "kernels are compiled now, once" in capsys.readouterr().err
    (tmp_path / "serve.decide-30.py311.nbi").touch()  # what agents need, and studies do not
    gb.study(shop(), **ROLES)
    assert "kernels are compiled now, once" in capsys.readouterr().err
    (tmp_path / "loop._rounds.locals.rounds-118.py311.nbi").touch()  # compiled before
    gb.study(shop(), **ROLES)
    assert capsys.readouterr().err == ""


def test_what_is_compiled_is_known_by_its_file() -> None:
    gb.simulate("toy", ["baseline"], rounds=2, progress=False)
    assert any(cache_folder().rglob(make.COMPILED))


def test_no_time_is_forecast_from_compiling(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first world takes ten minutes, each of the others about one; the clock is set by hand."""
    clock = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])

    def expect(logs: Any, **told: Any) -> Expectation:
        for seconds in (600.0, 66.0, 66.0):
            clock[0] += seconds
            told["progress"](0.25)
        return expectation(Prospects(LEAVES, STAYS))

    monkeypatch.setattr(make, "expect", expect)
    monkeypatch.setattr(make, "COMPILED", "nothing")
    gb.study(shop(), **ROLES)
    assert capsys.readouterr().err.splitlines()[1:] == [
        "studying the logs: compiling, once: 45 % after 10 min",
        "studying the logs: 60 % after 11 min, about 3 min left",
        "studying the logs: 75 % after 12 min, about 2 min left",
    ]


def test_labels_and_names_are_escaped(quick: None) -> None:
    frame = shop().replace({"item": {"a": "<script>alert(1)</script>"}})
    frame = frame.rename(columns={"age": "<b>age</b>"})
    found = gb.study(frame, **ROLES)
    for text in (found.to_html(), found._repr_html_()):
        assert "<script>alert" not in text
        assert "<b>age" not in text


def test_notebooks_get_the_advice_and_two_tables(found: gb.Study) -> None:
    text = found._repr_html_()
    assert "Switch on an agent in strict mode" in text
    assert text.count("<table") == 2
    assert "<Study of 200 of 400 rows>" in repr(found)


def test_the_agent_file_makes_an_agent_that_refuses_rows_that_were_looked_at(
    found: gb.Study, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file': it cannot be a folder for the study"):
        found.save(tmp_path / "file")
    page = found.save(tmp_path / "out")
    assert found.recommendation in unescape(page.read_text(encoding="utf-8"))
    assert json.loads((tmp_path / "out/study.json").read_text()) == found.to_dict()
    file = read_agent_file(tmp_path / "out/agent.toml")
    assert file.features == found.logs.encoder
    assert file.columns["reward"] == "clicked"
    assert file.settings["alpha"] == 0.1
    looked = file.looked_at
    assert looked is not None
    frame = shop()
    table = found.logs.encoder.table(frame)
    for ids in (None, frame.request.tolist()):
        known = looked.recognise(table, frame.clicked.to_numpy(float), ids)
        assert known.rows[:200].all()
        assert known.rows[200:].sum() <= (0 if ids else 10)  # a few hold the same, out of order
        rest = None if ids is None else ids[200:]
        clicked = frame.clicked.to_numpy(float)[200:]
        assert looked.recognise(table[200:], clicked, rest).reused == 0
    assert "theta_bound" in (tmp_path / "out/agent.toml").read_text().split("format =")[0]


@pytest.mark.parametrize(
    ("outlook", "mode", "settings", "words"),
    [
        (expectation(GOOD), "strict", {}, "Switch on an agent in strict mode"),
        (
            expectation(BAD, GOOD),
            "trial_budget",
            {"trial_budget": 3.25},
            "budget for trials of 3.25",
        ),
        (expectation(BAD, BAD, GOOD), "policy", {"mode": "policy"}, 'mode="policy", which'),
        (expectation(BAD), None, {}, "Do not expect an agent with these features to learn"),
        (expectation(BAD), None, {}, "Describe actions by features that they share"),
        (expectation(BAD, policy=UNCLEAR), None, {}, "Whether policy mode leads away from it, the"),
        (expectation(Prospects(BEST, BEST)), None, {}, "nothing to gain"),
        (expectation(UNCLEAR), "strict", {}, "the logs cannot tell: in 4 of 9"),
    ],
)
def test_the_most_cautious_mode_that_learns_is_advised(
    found: gb.Study,
    outlook: Expectation,
    mode: str | None,
    settings: dict[str, Any],
    words: str,
) -> None:
    given = (found.logs, found.contents, found.linearity, found.settings, outlook, found.values)
    advice = advise(*given)
    assert advice.mode == mode
    assert words in advice.text
    assert {k: advice.settings[k] for k in settings} == settings
    assert {"mode", "trial_budget"} & set(advice.settings) == set(settings)
    again = replace(found, advice=advice, expectation=outlook)
    assert again.agent_file().arguments["algorithm"].mode == settings.get("mode", "strict")


def test_advice_fits_the_logs(quick: None) -> None:
    """Of a column that knows the reward it warns first; of nothing to learn it says so."""
    frame = shop()
    leaky = gb.study(frame.assign(seconds=frame.clicked * 3.5), time="when", **ROLES)
    assert leaky.recommendation.startswith("First look at seconds")
    alike = gb.study(frame.assign(clicked=1), time="when", **ROLES)
    assert "nothing to learn from these rows: all rewards are alike" in alike.recommendation
    assert "Crosses" not in alike.recommendation
    varied = advise(
        alike.logs,
        leaky.contents,
        alike.linearity,
        alike.settings,
        expectation(Prospects(replace(STAYS, blocked_by=()), STAYS)),
        alike.values,
    )
    assert "at random" not in varied.text  # they are random already
    assert "Collect more rows" in varied.text


def test_the_same_seed_gives_the_same_study(found: gb.Study) -> None:
    assert gb.study(shop(), time="when", **ROLES).to_dict() == found.to_dict()


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["study", *words])


def test_the_command_writes_a_page_and_an_agent(
    quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop().to_csv("log.csv", index=False)
    result = run("--init", "study.toml")
    assert result.exit_code == 0
    text = Path("study.toml").read_text()
    text = text.replace('reward = "reward"', 'reward = "clicked"', 1)
    text = text.replace('action = "action"', 'action = "item"', 1)
    text = text.replace('# propensity = "propensity"', 'propensity = "chance"')
    text = text.replace('# id = "id"', 'id = "request"')
    Path("study.toml").write_text(text)
    result = run("log.csv", "--config", "study.toml", "--out", "report", "--rounds", "500")
    assert result.exit_code == 0, result.output
    assert "What to expect within 500 rounds" in result.output
    assert sorted(path.name for path in Path("report").iterdir()) == [
        "agent.looked-at.npz",
        "agent.toml",
        "study.html",
        "study.json",
    ]
    shown = run("log.csv", "--config", "study.toml", "--json", "--alpha", "0.2")
    assert set(json.loads(shown.stdout)) == KEYS
    assert not Path("guardband-study").exists()
    assert isinstance(run("--init", "study.toml").exception, FileExistsError)
    assert "give a file of logs" in str(run().exception)


def test_a_study_in_the_middle_of_which_something_is_wrong_leaves_nothing(
    quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shop().assign(clicked=3).to_csv("log.csv", index=False)
    Path("study.toml").write_text('reward = "clicked"\naction = "item"\n')
    result = run("log.csv", "--config", "study.toml")
    assert "column 'clicked', row 1: 3 is not a reward between 0 and 1" in str(result.exception)
    assert not Path("guardband-study").exists()


@pytest.mark.slow
def test_a_whole_study_of_logs_that_help(tmp_path: Path) -> None:
    """One value per item, all of them played alike: logs lead away from the baseline at once."""
    frame = pd.DataFrame(shop(20_000, seed=3)).assign(old="c")
    found = gb.study(frame, rounds=500, baseline="old", **ROLES)
    assert found.expectation.strict.with_logs.can_leave is True
    assert found.values.better is True
    found.save(tmp_path)
    agent = gb.Agent.from_file(tmp_path / "agent.toml")
    with pytest.raises(gb.InvalidValueError, match="was looked at by the study"):
        agent.learn(frame[:10], frame.clicked[:10], ids=frame.request[:10].tolist())
    rest = frame.iloc[10_000:]
    agent.learn(rest, rest.clicked, ids=rest.request.tolist())
    offers = pd.DataFrame(
        {"price": [3.0, 5, 7, 9], "segment": "x", "age": 30.0}, index=list("abcd")
    )
    assert agent.decide(offers, baseline="c").label in ("a", "b")
