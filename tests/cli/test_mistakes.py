"""The command line: mistakes get a sentence and an exit code, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.command import refuse, started

from guardband.cli import main as start

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "--problem", "movielenz"), "Did you mean 'movielens'?"),
        (("run", "--algorithms", "disc-ucv"), "Did you mean 'disc-ucb'?"),
        (("run", "--algorithms", ","), "algorithms is empty"),
        (("run", "--problm", "toy"), "--problem"),
        (("runn",), "run"),
        (("data", "fetch", "movielenz"), "Did you mean 'movielens'?"),
        (("run", "--rounds", "0"), "rounds must be at least 1, not 0"),
        (("run", "--trials", "0"), "trials must be at least 1, not 0"),
        (("run", "--agents", "0"), "agents must be at least 1, not 0"),
        (("run", "--seed", "-1"), "seed must be at least 0, not -1"),
        (("run", "--alpha", "2"), "alpha must lie in (0, 1], not 2.0"),
        (("run", "--alpha", "x"), "not 'x'"),
        (("run", "--rounds", "many"), "--rounds"),
        (("run", "--history", "many"), "history must be a number of rounds"),
        (("run", "--history", "10,best"), "history's rule must be one of"),
        (("run", "missing.toml"), "there is no missing.toml; make one with --init missing.toml"),
        (("run", "--problem", "missing.npz"), "missing.npz"),
        (("bounds", "forecast"), "guardband bounds --problem forecast"),
    ],
)
def test_mistakes_get_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    told: str,
) -> None:
    err = refuse(monkeypatch, capsys, *words)
    assert told in err
    assert not Path("guardband-run").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('problem = "toyy"', "Did you mean 'toy'?"),
        ("problm = 1", "my.toml: unknown setting 'problm'. Did you mean 'problem'?"),
        ("problem = 1", "my.toml: problem must be a text, not 1"),
        ('algorithms = "disc-ucb"', "my.toml: algorithms must be a list of names, not 'disc-ucb'"),
        ("settings = 3", "my.toml: settings must be a table, not 3"),
        ('trials = "many"', "trials must be a whole number, not 'many'"),
        ("[settings]\nnosie = 1", "no algorithm has a setting 'nosie'. Did you mean 'noise'?"),
        ("[settings]\nalpha = 0.1", "write it above [settings]"),
        ("[problem_settings]\nbasline = 1", "Did you mean 'baseline'?"),
        ('[problem_settings]\nreward_std = {model = "studnt"}', "Did you mean 'student'?"),
        ("[problem_settings]\nreward_std = {sdt = 1}", "Did you mean 'std'?"),
        ("problem = ", "is not valid TOML"),
    ],
)
def test_mistakes_in_a_file_get_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    Path("my.toml").write_text(text + "\n")
    assert told in refuse(monkeypatch, capsys, "run", "my.toml")


def test_init_does_not_overwrite(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my.toml").write_text("mine")
    assert "is there already" in refuse(monkeypatch, capsys, "run", "--init", "my.toml")
    assert Path("my.toml").read_text() == "mine"


def test_a_user_sees_the_sentence_and_the_exit_code() -> None:
    done = started("run", "--problem", "forcast")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: problem must be one of")
    assert done.stderr.rstrip().endswith("Did you mean 'forecast'?")


def test_a_missing_extra_is_a_sentence_for_packages_and_checkouts() -> None:
    code = (
        "import sys; sys.modules['apsw'] = None; from guardband.cli import main; "
        "sys.argv = ['guardband', 'export', '--out', 'x.parquet']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "error: this needs apsw: pip install 'guardband[live]' (in a checkout: pip install "
        "'.[live]').\n"
    )


def test_who_stops_it_while_it_loads_sees_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Stopped:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "guardband.cli.app":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "guardband.cli.app")
    monkeypatch.setattr(sys, "meta_path", [Stopped(), *sys.meta_path])
    monkeypatch.setattr(sys, "argv", ["guardband", "run"])
    with pytest.raises(SystemExit) as ended:
        start()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stopped.\n"
