"""The command line: what it prints, what it writes, how it fails."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from cli.command import SMALL, answer, refuse, started
from typer.testing import CliRunner

import guardband as gb
from guardband.algorithms import ALGORITHMS
from guardband.cli.app import app
from guardband.cli.config import DEFAULT_ALGORITHMS, RunConfig, make_problem, read_config
from guardband.problems import PROBLEMS, MovieLens, SyntheticC

FIELDS = ["problem", "settings", "series", "seconds"]
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
    "uplift",
    "uplift_low",
    "uplift_high",
]
pytestmark = pytest.mark.usefixtures("folder")


def as_json(*words: str) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(answer("run", *words, "--json"))
    return loaded


# ---- guardband run -----------------------------------------------------------------------------


def test_json_is_one_object_and_nothing_else() -> None:
    done = started("run", *SMALL, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert list(found) == FIELDS
    assert [list(row) for row in found["series"]] == [SERIES_FIELDS] * len(DEFAULT_ALGORITHMS)
    assert not Path("guardband-run").exists()


def test_json_says_what_was_run() -> None:
    found = as_json(*SMALL, "--algorithms", "disc-ucb,dis-lin-ucb", "--alpha", "0.2", "--seed", "3")
    assert found["problem"] == "synthetic-a"
    settings = found["settings"]
    assert isinstance(settings, dict)
    assert (settings["rounds"], settings["trials"], settings["seed"]) == (50, 2, 3)
    assert settings["algorithms"]["disc-ucb"]["alpha"] == 0.2
    assert isinstance(found["seconds"], float)
    series = found["series"]
    assert isinstance(series, list)
    assert [row["algorithm"] for row in series] == ["disc-ucb", "dis-lin-ucb"]
    for row in series:
        assert row["alpha"] == 0.2
        assert row["agents"] == 1
        low, high = row["regret_ci"]
        assert low <= row["regret_per_agent"] <= high
        assert 0 <= row["conservative_share"] <= 1
        for field in ("violations_expected", "violations_realised"):
            assert 0 <= row[field] <= 50
        assert row["numbers_sent"] == row["sync_rounds"] * 2 * 1 * (3 + 2)


def test_algorithms_are_told_the_bounds_on_noise() -> None:
    Path("my.toml").write_text("[settings]\nnoise = 0.3\nridge = 2.0\n")
    words = ("my.toml", *SMALL, "--algorithms", "disc-ucb")
    found = as_json(*words, "--noise", "0.2", "--context-noise", "0.4")["settings"]
    assert isinstance(found, dict)
    told = found["algorithms"]["disc-ucb"]
    assert (told["noise"], told["context_noise"], told["ridge"]) == (0.2, 0.4, 2.0)


def test_json_has_null_where_nothing_can_be_told() -> None:
    found = as_json("--problem", "synthetic-a", "--rounds", "20", "--trials", "1")
    assert isinstance(found["series"], list)
    assert {tuple(row["regret_ci"]) for row in found["series"]} == {(None, None)}


def test_json_with_a_place_writes_the_report_too() -> None:
    as_json(*SMALL, "--out", "place")
    assert Path("place/report.html").is_file()


def test_the_same_seed_gives_the_same_numbers() -> None:
    runs = [as_json(*SMALL, "--seed", seed)["series"] for seed in ("0", "0", "1")]
    assert runs[0] == runs[1] != runs[2]


def test_agents_and_alpha_per_agent() -> None:
    words = ("--problem", "synthetic-c", "--rounds", "20", "--trials", "2", "--agents", "2")
    found = as_json(*words, "--algorithms", "disc-ucb", "--alpha", "0.2, 0.4")
    assert isinstance(found["series"], list)
    assert found["series"][0]["agents"] == 2
    assert found["series"][0]["alpha"] == [0.2, 0.4]


def test_without_a_problem_the_floor_is_that_of_agents() -> None:
    found = as_json("--rounds", "1e1", "--trials", "1", "--algorithms", "guard-ucb,dis-lin-ucb")
    assert isinstance(found["series"], list)
    assert [row["alpha"] for row in found["series"]] == [gb.GuardUCB().alpha] * 2
    named = as_json("--problem", "movielens", "--rounds", "10", "--trials", "1")
    assert isinstance(named["settings"], dict)
    assert named["settings"]["alpha"] == [0.5] * 3  # the paper's own


def test_a_run_prints_a_table_a_sentence_and_where_the_report_is() -> None:
    out = answer("run", *SMALL, "--out", "place")
    assert {"disc-ucb", "disc-ucb-gap-oracle", "dis-lin-ucb", "baseline"} <= set(DEFAULT_ALGORITHMS)
    for name in DEFAULT_ALGORITHMS:
        assert name in out
    assert "The report, with plots and tables: place/report.html" in out
    assert "never left the baseline" in out
    report = Path("place/report.html").read_text()
    assert "guardband run --problem synthetic-a --rounds 50 --trials 2" in report
    assert {"summary.csv", "agents.csv", "curves.csv", "settings.json", "regret.png"} <= {
        path.name for path in Path("place").iterdir()
    }


def test_the_report_goes_to_a_folder_of_that_name() -> None:
    answer("run", *SMALL)
    assert Path("guardband-run/report.html").is_file()


def test_the_default_problem_is_one_to_which_promises_apply() -> None:
    few = ("--rounds", "20", "--trials", "1")
    default, named = as_json(*few), as_json(*few, "--problem", "movielens")
    for found, nature in ((default, "fresh"), (named, "frozen")):
        settings = found["settings"]
        assert isinstance(settings, dict)
        assert found["problem"] == "movielens"
        assert settings["problem"]["nature"] == nature
    Path("my.toml").write_text("[problem_settings]\nbaseline = 7\n")
    assert make_problem(read_config(Path("my.toml"))) == MovieLens(baseline=7, nature="fresh")
    changed = read_config(Path("my.toml")).updated({}, problem="synthetic-c")
    assert make_problem(changed) == SyntheticC(baseline=7)


def test_the_first_screen_fits_and_speaks_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    out = answer("run", "--rounds", "200", "--trials", "2")
    assert max(map(len, out.splitlines())) <= 80
    assert "• guard-ucb kept its promise: it was never below the floor" in out
    assert "held back" in out
    assert not any(line.strip() == "e" for line in out.splitlines()), "a name was folded"


def test_a_place_that_cannot_be_written_is_refused_before_the_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").write_text("")
    monkeypatch.setattr("guardband.simulate", None)  # it must not come to that
    for words in (("--out", "file/place"), ("--out", "file", "--json")):
        err = refuse(monkeypatch, capsys, "run", *SMALL, *words)
        assert "the report cannot be written to file" in err
        assert "choose another folder with --out." in err


def test_a_settings_file_round_trips() -> None:
    out = answer("run", "--init", "my.toml")
    assert "guardband run my.toml" in out
    text = Path("my.toml").read_text()
    assert text.count("#") > 10, "it should be commented"
    assert read_config(Path("my.toml")) == RunConfig(out="guardband-run")
    lines = [line.removeprefix("# ") for line in text.splitlines()[3:]]
    lines = [line for line in lines if "=" in line or line.startswith("[")]
    everything = tomllib.loads("\n".join(lines))  # what is commented out is valid as well
    assert set(everything) == set(RunConfig.__dataclass_fields__)
    answer("run", "my.toml", "--rounds", "20", "--trials", "1")


def test_options_override_the_file() -> None:
    Path("my.toml").write_text(
        'problem = "synthetic-c"\nalgorithms = ["dis-lin-ucb"]\nagents = 2\nrounds = 30\n'
        "trials = 2\nseed = 5\nalpha = [0.1, 0.2]\n"
        "[settings]\nnoise = 0.3\n[problem_settings]\nbaseline = 7\n"
        'reward_std = {model = "student", std = 0.1, df = 4}\n'
    )
    found = as_json("my.toml", "--seed", "6")
    settings = found["settings"]
    assert isinstance(settings, dict)
    assert (settings["rounds"], settings["seed"], settings["agents"]) == (30, 6, 2)
    assert settings["alpha"] == [0.1, 0.2]
    assert settings["algorithms"]["dis-lin-ucb"]["noise"] == 0.3
    assert settings["problem"]["baseline"] == 7
    assert "StudentNoise(std=0.1, df=4.0)" in settings["problem"]["reward_std"]


def test_agents_learn_a_history_first() -> None:
    found = as_json(*SMALL, "--algorithms", "dis-lin-ucb", "--history", "2e1,uniform")
    assert found["settings"]["history"] == [20, "uniform"]
    Path("my.toml").write_text('algorithms = ["dis-lin-ucb"]\nhistory = 30\n')
    found = as_json("my.toml", *SMALL)
    assert found["settings"]["history"] == [30, "baseline"]


def test_a_problem_of_ones_own_from_a_file() -> None:
    phi = np.random.default_rng(0).uniform(0.1, 0.5, (4, 3, 2))
    np.savez("mine.npz", phi=phi, psi=phi, theta=[0.6, 0.5])
    found = as_json("--problem", "mine.npz", "--rounds", "30", "--trials", "2")
    assert found["problem"] == "mine"
    assert isinstance(found["series"], list)
    assert len(found["series"]) == len(DEFAULT_ALGORITHMS)


def test_every_algorithm_runs_by_name() -> None:
    names = ",".join(ALGORITHMS)
    found = as_json("--problem", "synthetic-c", "--rounds", "20", "--algorithms", names)
    assert isinstance(found["series"], list)
    assert [row["algorithm"] for row in found["series"]] == list(ALGORITHMS)


def test_a_bound_that_does_not_hold_is_a_note_on_standard_error() -> None:
    Path("my.toml").write_text("[settings]\nfeature_bound = 0.5\n")
    done = started("run", "my.toml", *SMALL, "--json")
    assert done.returncode == 0
    assert list(json.loads(done.stdout)) == FIELDS
    assert "note: " in done.stderr
    assert "feature_bound=0.5" in done.stderr


def test_the_version_needs_nothing_loaded() -> None:
    code = (
        "import sys; from guardband.cli import main; sys.argv[1:] = ['--version']; main(); "
        "print({'numba', 'pandas', 'typer'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"guardband {gb.__version__}\nset()\n"


# ---- lists and help ----------------------------------------------------------------------------


def test_problems_lists_all_with_their_sizes() -> None:
    lines = answer("problems").splitlines()
    for name, kind in PROBLEMS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        sizes = kind().sizes
        numbers = [sizes["agents"], sizes["actions"], sizes["contexts"], sizes["features"]]
        assert line.split()[1:5] == [str(n) for n in numbers]
        assert kind.about in line


def test_algorithms_lists_all() -> None:
    lines = answer("algorithms").splitlines()
    for name, entry in ALGORITHMS.items():
        (line,) = [line for line in lines if line.split()[:1] == [name]]
        assert entry.about in line


def test_data_says_what_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GUARDBAND_DATA", str(tmp_path))
    out = answer("data")
    for name in ("movielens", "lastfm"):
        (line,) = [line for line in out.splitlines() if line.startswith(name)]
        assert "missing" in line
    assert "guardband data fetch NAME" in out


def test_help_teaches() -> None:
    top = answer("--help")
    for verb in ("run", "problems", "algorithms", "data"):
        assert verb in top
    assert "Start with: guardband run" in top
    told = answer("run", "--help")
    for option in ("problem", "algorithms", "agents", "alpha", "rounds", "trials", "seed", "out"):
        assert f"--{option}" in told
    assert "--json" in told
    assert "--init" in told
    assert "guardband run --problem synthetic-a" in told
    for verb in ("fetch", "import", "build"):
        assert verb in answer("data", "--help")


def test_no_words_show_the_help() -> None:
    result = CliRunner().invoke(app, [])
    assert "Start with: guardband run" in result.output


@pytest.mark.parametrize("words", [["study"], ["learn"], ["space", "create"], ["run"]])
def test_help_is_wrapped_where_the_terminal_ends(words: list[str]) -> None:
    """No line stops in the middle of a paragraph because the docstring's did."""
    told = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).output
    lines = [line.strip() for line in told.partition("╭")[0].splitlines()]
    for line, after in itertools.pairwise(lines):
        if line and after and not line.startswith("guardband"):
            assert len(line) + len(after.split()[0]) > 70, line
