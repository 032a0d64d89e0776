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
        (("run", "--rounds", "many"), "--rounds': 'many' is no whole number"),
        (("run", "--rounds", "1.5"), "'1.5' is no whole number"),
        (("run", "--trials", "1e999999999"), "'1e999999999' is no whole number"),
        (("run", "--noise", "x"), "--noise': 'x' is no number; write 0.1 or 1e-3."),
        (("run", "--noise", "0,1"), "'0,1' is no number"),
        (("run", "--budget", "inf"), "'inf' is no number"),
        (("bounds", "--alpha", "nan"), "'nan' is no number"),
        (("study", "logs.csv", "--alpha", "5 %"), "'5 %' is no number; write 0.05."),
        (("space", "create", "q", "--alpha", "10%"), "'10%' is no number; write 0.1."),
        (("space", "set-alpha", "q", "ten"), "for 'alpha': 'ten' is no number; write 0.1"),
        (("demo", "--rate", "fast"), "--rate': 'fast' is no number"),
        (("demo", "--rate", "0"), "'0' is too small: the least is 0.1."),
        (("demo", "--rate", "1e3"), "'1e3' is too large: the most is 500."),
        (("demo", "--minutes", "-1"), "'-1' is too small: the least is 0."),
        (("demo", "--port", "many"), "'many' is no port; write a whole number from 0 to"),
        (("serve", "--port", "99999"), "--port': '99999' is no port"),
        (("agent", "--space", "s", "--task", "t", "--port", "-1"), "'-1' is no port"),
        (("learn", "none.csv", "--space", "s", "--task", "t"), "there is no file none.csv."),
        (("learn", ".", "--space", "s", "--task", "t"), ". is a folder: give one file."),
        (("run", "--history", "many"), "history must be a number of rounds"),
        (("run", "--history", "10,best"), "history's rule must be one of"),
        (("run", "missing.toml"), "there is no missing.toml; make one with --init missing.toml"),
        (("run", "--problem", "missing.npz"), "missing.npz"),
        (("run", "--init", "/proc/x.toml"), "'/proc/x.toml': it cannot be written; choose another"),
        (("study", "--init", "/proc/x.toml"), "'/proc/x.toml': it cannot be written; choose"),
        (("status", "--url", "x:1", "--token", "t"), "'x:1' is no address of a coordinator, such"),
        (("bounds", "forecast"), "guardband bounds --problem forecast"),
        (("serve", "--data", "/proc/none"), "'/proc/none': no data can be kept there; choose"),
        (("serve", "--data", "/dev/null/x"), "'/dev/null/x': no data can be kept there; choose"),
        (
            ("space", "create", "home", "--file", "/proc"),
            "'/proc': it cannot be read; give --file a file of JSON (Is a directory).",
        ),
        (
            ("space", "create", "home", "--named-features", "none"),
            "'none': it cannot be read; give --named-features a file of JSON (No such file or",
        ),
        (("serve", "--space", "/proc"), "'/proc': it cannot be read; give --space a file of JSON"),
        (("warmup", "guard-uc"), "role must be one of 'guard-ucb', 'value', 'tolerate', 'others'"),
        (("warmup", "guard-uc"), "not 'guard-uc'. Did you mean 'guard-ucb'?"),
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
    assert "Errno" not in err
    assert not Path("guardband-run").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"a,b\n1,2\n", "'my.json' is not valid JSON: Expecting value: line 1 column 1"),
        (b"[1]", """'my.json' has no settings, as in {"agents": 2}, but [1]."""),
        (b"\xff\xfe", "'my.json' is no text; give --file a file of JSON."),
    ],
)
def test_a_file_of_a_space_that_is_none_gets_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: bytes, told: str
) -> None:
    Path("my.json").write_bytes(text)
    assert told in refuse(monkeypatch, capsys, "space", "create", "home", "--file", "my.json")


@pytest.mark.parametrize(
    ("coordinator", "told"),
    [
        ("local:gb", "there is no space 'home' yet: it is made with {}, which names its features"),
        ("http://127.0.0.1:1", "try again when it answers; with {} the baseline is played"),
    ],
)
def test_who_has_no_space_is_told_of_an_option_and_not_of_python(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    coordinator: str,
    told: str,
) -> None:
    Path("logs.csv").write_text("a,reward\n1,0\n")
    given = ("--space", "home", "--task", "web", "--state", "web", "--coordinator", coordinator)
    err = refuse(monkeypatch, capsys, "agent", *given, "--port", "0")
    assert told.format("--space-file FILE") in err
    err = refuse(monkeypatch, capsys, "learn", "logs.csv", *given)
    assert told.format("`guardband agent --space-file FILE`") in err


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
