"""`guardband reproduce`: what it prints, what it keeps, how it stops and how it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli.command import refuse
from matplotlib.figure import Figure
from typer.testing import CliRunner

import guardband as gb
from guardband import lab
from guardband.algorithms import ALGORITHMS
from guardband.cli import reproduce as module
from guardband.cli.app import app
from guardband.lab.panel import Claim, Run, RunOptions, RunResults
from guardband.lab.panel_result import PanelResult

FIELDS = ["panel", "scale", "settings", "series", "claims", "seconds"]
SERIES_FIELDS = [
    "algorithm",
    "label",
    "agents",
    "alpha",
    "regret_per_agent",
    "regret_expected_per_agent",
    "regret_ci",
    "violations_expected",
    "violations_realised",
    "conservative_share",
    "sync_rounds",
    "numbers_sent",
]


class Small:
    """A panel of seconds, whose claims have every verdict."""

    title, source = "A small panel", ""

    def __init__(self, name: str) -> None:
        self.name, self.question = name, f"What does {name} ask?"
        self.asked: list[RunOptions] = []

    def runs(self, options: RunOptions) -> Sequence[Run]:
        self.asked.append(options)
        names = ("baseline", "dis-lin-ucb", *options.extra)
        return [
            Run(
                label=f"the {name}",
                problem=gb.problem("synthetic-b"),
                algorithm=ALGORITHMS[name].make(),
                rounds=options.rounds(400),
                trials=options.trials(4),
                seed=options.seed,
                alpha=None if name == "baseline" else 0.25,
            )
            for name in names
        ]

    def claims(self, options: RunOptions, results: RunResults) -> Sequence[Claim]:
        regret = results["the baseline"].series.regret.mean()
        return [
            Claim(f"{self.name}-a", "A true sentence", True, f"regret {regret:.3g}"),
            Claim(f"{self.name}-b", "A false one", False, "1 of [2]"),
            Claim(f"{self.name}-c", "Who knows", None, ""),
        ]

    def draw(self, options: RunOptions, results: RunResults) -> Figure:
        return Figure()

    def remarks(self, options: RunOptions) -> Sequence[str]:
        return []


class Shown:
    """What the report was given."""

    def __init__(self) -> None:
        self.panels: list[str] = []
        self.commands: list[str] = []
        self.missing: list[str] = []

    def write_panel(self, outcome: PanelResult, place: Path) -> None:
        self.panels.append(outcome.panel.name)

    def write_report(
        self,
        outcomes: Sequence[PanelResult],
        place: Path,
        command: str,
        missing: Sequence[str],
    ) -> Path:
        self.commands.append(command)
        self.missing = list(missing)
        (place / "index.html").write_text("all of it")
        return place / "index.html"


@pytest.fixture
def panels() -> dict[str, Small]:
    return {name: Small(name) for name in ("1a", "2b", "lemmas")}


@pytest.fixture(autouse=True)
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panels: dict[str, Small]) -> Shown:
    shown = Shown()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("GUARDBAND_TRIALS", str(tmp_path / "trials"))
    monkeypatch.setattr(lab, "PANELS", dict(panels))
    monkeypatch.setattr(lab, "write_panel", shown.write_panel)
    monkeypatch.setattr(lab, "write_report", shown.write_report)
    return shown


def answer(*words: str) -> str:
    """Return standard output of a command that succeeds."""
    result = CliRunner().invoke(app, ["reproduce", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


# ---- what it prints ----------------------------------------------------------------------------


def test_json_of_one_panel_is_one_object(report: Shown) -> None:
    text = answer("1a", "--json", "--seed", "3")
    assert text.count("\n") == 1
    results = json.loads(text)
    assert list(results) == FIELDS
    assert (results["panel"], results["scale"], results["settings"]) == ("1a", "quick", "printed")
    assert [list(row) for row in results["series"]] == [SERIES_FIELDS] * 2
    assert [claim["holds"] for claim in results["claims"]] == [True, False, None]
    fields = ["id", "text", "holds", "detail", "vacuous"]
    assert [list(claim) for claim in results["claims"]] == [fields] * 3
    assert results["seconds"] > 0
    assert not report.panels  # files only where they are asked for
    assert not Path("report").exists()


@pytest.mark.filterwarnings("ignore::guardband.BoundWarning")
def test_json_has_the_numbers_of_a_simulation() -> None:
    results = json.loads(answer("1a", "--json", "--scale", "paper", "--seed", "3"))
    problem, settings = gb.problem("synthetic-b"), {"rounds": 400, "trials": 4, "seed": 3}
    series = gb.simulate(problem, gb.DisLinUCB(), alpha=0.25, **settings).series[0]
    row = results["series"][1]
    assert row["algorithm"] == "dis-lin-ucb"
    assert row["label"] == "the dis-lin-ucb"
    assert (row["agents"], row["alpha"]) == (3, 0.25)
    mine = series.regret.mean(axis=1)
    half = 3.182446 * mine.std(ddof=1) / 2  # Student's t, three degrees of freedom, four trials
    assert row["regret_per_agent"] == pytest.approx(mine.mean())
    assert row["regret_ci"] == pytest.approx([mine.mean() - half, mine.mean() + half])
    assert row["violations_realised"] == series.violations_realised.mean()
    assert row["conservative_share"] == 0.0
    assert row["numbers_sent"] == row["sync_rounds"] * 2 * 3 * (3 + 2)
    reference = results["series"][0]
    assert reference["alpha"] is None
    assert reference["violations_expected"] is None  # not counted: NaN is no JSON
    assert reference["conservative_share"] == 1.0


def test_json_of_several_panels_is_a_list() -> None:
    assert [each["panel"] for each in json.loads(answer("2b", "1a", "--json"))] == ["2b", "1a"]
    assert [each["panel"] for each in json.loads(answer("all", "--json"))] == ["1a", "2b", "lemmas"]


def test_json_with_a_place_writes_the_report_too(report: Shown) -> None:
    json.loads(answer("1a", "--json", "--out", "here"))
    assert Path("here/index.html").exists()
    assert report.panels == ["1a"]


def test_tables_of_verdicts_and_costs_and_where_the_report_is(report: Shown) -> None:
    text = answer("1a", "2b", "--scale", "smoke")
    lines = [line.split() for line in text.splitlines()]
    assert ["1a", "holds", "A", "true", "sentence"] in lines
    assert ["2b", "does", "not", "hold", "A", "false", "one"] in lines
    assert ["2b", "inconclusive", "Who", "knows"] in lines
    assert ["1", "of", "[2]"] in lines  # details, of few panels
    counts = ["1", "0", "1", "1"]  # hold, vacuously, do not, inconclusive
    costs = [line for line in lines if line[:1] in (["1a"], ["2b"]) and line[1:5] == counts]
    assert [line[6] for line in costs] == ["3,600", "3,600"]  # 2 runs, 2 trials, 300 rounds, 3
    assert "4 of 4 trials were run" in text
    assert "authors' notebooks would need" in text
    assert str(Path("report") / "index.html") in text
    assert report.panels == ["1a", "2b"]


def test_panels_are_told_of_as_they_finish() -> None:
    result = CliRunner().invoke(app, ["reproduce", "1a", "2b", "--json"])
    told = [line for line in result.stderr.splitlines() if line.startswith(("1a:", "2b:"))]
    assert [line.split(":")[0] for line in told] == ["1a", "2b"]
    assert all("holds: 1, does not hold: 1, inconclusive: 1" in line for line in told)
    assert all("agent-rounds/s" in line for line in told)


def test_the_order_reaches_the_panels(panels: dict[str, Small], report: Shown) -> None:
    words = ("--settings", "notebook", "--with", "lin-ucb, oracle,lin-ucb", "--seed", "7")
    text = answer("1a", "--scale", "smoke", *words)
    assert panels["1a"].asked == [
        RunOptions(scale="smoke", settings="notebook", extra=("lin-ucb", "oracle"), seed=7)
    ]
    (command,) = report.commands
    assert command == (
        "guardband reproduce 1a --scale smoke --settings notebook --with lin-ucb,oracle --seed 7"
    )
    assert "8 of 8 trials were run" in text


def test_algorithms_without_a_place_are_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(Small):
        def runs(self, options: RunOptions) -> Sequence[Run]:
            return super().runs(RunOptions(scale=options.scale))

    monkeypatch.setattr(lab, "PANELS", {"1a": Small("1a"), "toy": Closed("toy")})
    words = ["reproduce", "all", "--scale", "smoke", "--with", "lin-ucb,oracle"]
    result = CliRunner().invoke(app, words)
    notes = [line for line in result.stderr.splitlines() if line.startswith("note:")]
    assert notes == ["note: toy has no place for lin-ucb, oracle."]


def test_kept_trials_are_used_unless_they_may_not_be() -> None:
    assert "6 of 6 trials were run" in answer("1a")
    assert "0 of 6 trials were run" in answer("2b")  # another panel, the same trials
    assert "6 of 6 trials were run" in answer("1a", "--no-cache")
    assert "0 of 6 trials were run" in answer("1a")


def test_damaged_trials_are_told_of(tmp_path: Path) -> None:
    answer("1a")
    for path in (tmp_path / "trials").rglob("*.npz"):
        path.write_bytes(b"nothing")
    result = CliRunner().invoke(app, ["reproduce", "1a"])
    assert "note: 6 kept trials were damaged or foreign; they were run again." in result.stderr


def test_a_list_of_panels_with_question_size_and_time(panels: dict[str, Small]) -> None:
    text = answer("--list", "--scale", "paper")
    for name in panels:
        assert f"What does {name} ask?" in text
    assert text.count("2 × 4 × 400") == 3
    assert text.count(" s ") >= 4
    assert "8 trials" in text  # of all: panels share them


def test_a_list_for_programs(panels: dict[str, Small]) -> None:
    """2 runs of 4 trials of 400 rounds of 3 agents."""
    text = answer("--list", "--json", "--scale", "paper")
    assert text.count("\n") == 1
    results = json.loads(text)
    assert [each["panel"] for each in results] == list(panels)
    for each in results:
        assert list(each) == ["panel", "question", "runs", "agent_rounds", "seconds"]
        assert each["question"] == f"What does {each['panel']} ask?"
        assert (each["runs"], each["agent_rounds"]) == (2, 9_600)
        assert each["seconds"] > 0


def test_a_list_of_some() -> None:
    assert [each["panel"] for each in json.loads(answer("--list", "2b", "--json"))] == ["2b"]
    text = answer("--list", "2b")
    assert "What does 2b ask?" in text
    assert "What does 1a ask?" not in text


def test_the_command_that_asks_for_the_same_numbers() -> None:
    options = RunOptions(scale="paper", seed=3)
    told = module._command(["1a"], options, engine="ray", address="auto")
    assert told == (
        "guardband reproduce 1a --scale paper --settings printed --seed 3 --engine ray "
        "--address auto"
    )


def test_help_teaches() -> None:
    text = answer("--help")
    for words in ("reproduce --list", "all --scale paper", "--address auto", "--no-cache", "smoke"):
        assert words in text


def test_without_a_panel_it_runs_the_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "USUAL", ("1a", "lemmas"))
    assert [each["panel"] for each in json.loads(answer("--json"))] == ["1a", "lemmas"]


# ---- how it fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("all", "9z"), "there is no panel '9z'; there are 1a, 2b, lemmas and all."),
        (("--list", "9z"), "there is no panel '9z'; there are 1a, 2b, lemmas and all."),
        (("lemma",), "there is no panel 'lemma'; there are 1a, 2b, lemmas and all. Did you mean"),
        (("1a", "--scale", "papr"), "scale must be one of 'smoke', 'quick', 'paper', not 'papr'."),
        (("1a", "--settings", "text"), "settings must be one of 'printed', 'notebook'"),
        (("1a", "--with", "guard"), "an algorithm after --with must be one of"),
        (("1a", "--engine", "rey"), "engine must be one of 'local', 'ray', not 'rey'. Did you"),
        (("1a", "--address", "auto"), "add --engine ray"),
        (("1a", "--workers", "0"), "workers must be at least 1, not 0"),
        (("1a", "--seed", "-1"), "seed must be at least 0, not -1"),
        (("1a", "--out", "file/inside"), "cannot be written to file/inside (Not a directory)"),
    ],
)
def test_mistakes_get_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    Path("file").write_text("in the way")
    assert told in refuse(monkeypatch, capsys, "reproduce", *words)


def test_without_ray_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    told = refuse(monkeypatch, capsys, "reproduce", "1a", "--engine", "ray")
    assert "pip install 'guardband[ray]'" in told
