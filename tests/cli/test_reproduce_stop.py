"""`guardband reproduce` and Ctrl-C: what is finished is kept, written and told of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli.test_reproduce import Shown, Small, panels, report
from typer.testing import CliRunner, Result

from guardband.cli import reproduce as module
from guardband.cli.app import app
from guardband.lab.panel import Claim, RunOptions, RunResults

__all__ = ["panels", "report"]  # fixtures

HELPERS = Path(__file__).with_name("test_reproduce.py")


def stopped(*words: str) -> Result:
    """Return what a command leaves that ends as after Ctrl-C."""
    result = CliRunner().invoke(app, ["reproduce", *words, "--scale", "smoke"])
    assert result.exit_code == module.STOPPED
    assert isinstance(result.exception, module.InterruptedRun)  # so that main adds nothing
    assert result.stdout == ""
    return result


def interrupt(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def test_while_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch, report: Shown) -> None:
    monkeypatch.setattr(module.lab, "run_trial", interrupt)
    result = stopped("1a", "2b")
    assert "stopped: 0 of 4 trials are kept; the same command goes on from there." in result.stderr
    assert report.commands == []


def test_before_anything_is_known(panels: dict[str, Small]) -> None:
    panels["1a"].runs = interrupt  # type: ignore[method-assign]
    assert "stopped before any trial." in stopped("1a").stderr


def test_finished_panels_get_a_page(panels: dict[str, Small], report: Shown) -> None:
    """The second of three panels is being judged."""

    def claims(options: RunOptions, results: RunResults) -> Sequence[Claim]:
        raise KeyboardInterrupt

    panels["2b"].claims = claims  # type: ignore[method-assign]
    result = stopped("all")
    assert "stopped: 4 of 4 trials are kept" in result.stderr
    assert "Finished panels are in report." in result.stderr
    page = Path("report/index.html")
    assert page.exists()
    assert f"The report on the finished panels: {page}" in result.stderr
    assert report.panels == ["1a"]
    assert report.missing == ["2b", "lemmas"]


def test_while_the_page_is_written(monkeypatch: pytest.MonkeyPatch, report: Shown) -> None:
    """It is not begun anew: somebody would not wait for it."""
    calls: list[int] = []

    def write(*_: Any, **__: Any) -> Path:
        calls.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(module.lab, "write_report", write)
    result = stopped("1a")
    assert len(calls) == 1
    assert "stopped: 4 of 4 trials are kept; the same command goes on from there." in result.stderr
    assert "Finished panels are in report." in result.stderr


def test_without_a_cache_nothing_is_promised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.lab, "write_report", interrupt)
    assert "no trial is kept with --no-cache" in stopped("1a", "--no-cache").stderr


# In the background of a shell SIGINT is ignored, and so it is in all that is started from there.
SCRIPT = """
import signal
import sys
from dataclasses import replace
import guardband as gb
from guardband import lab
from guardband.cli.app import main
from tests_reproduce import Small, Shown

class Long(Small):
    def runs(self, options):
        runs = super().runs(options)
        return [*runs, replace(runs[1], label="long", rounds={rounds})]

signal.signal(signal.SIGINT, signal.default_int_handler)
shown = Shown()
lab.PANELS = {{"1a": Small("1a"), "long": Long("long")}}
lab.write_panel, lab.write_report = shown.write_panel, shown.write_report
sys.argv = ["guardband", "reproduce", "1a", "long"]
main()
"""


@contextmanager
def started(tmp_path: Path, rounds: int) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process of its own, which ends with the block at the latest."""
    folder = tmp_path / "code"
    folder.mkdir(exist_ok=True)
    (folder / "tests_reproduce.py").write_text(HELPERS.read_text())
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT).format(rounds=rounds))
    with subprocess.Popen(
        [sys.executable, str(folder / "script.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "GUARDBAND_TRIALS": str(tmp_path / "trials"),
            "PYTHONPATH": os.pathsep.join([str(HELPERS.parents[1]), *sys.path]),
        },
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    """The first panel is done, the second would take hours."""
    with started(tmp_path, rounds=10**10) as process:
        deadline = time.monotonic() + 120
        while len(list((tmp_path / "trials").rglob("*.npz"))) < 6:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1.0)
        interrupted = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert time.monotonic() - interrupted < 10
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "stopped: 6 of 9 trials are kept; the same command goes on from there." in err
    assert "Finished panels are in report." in err
    assert err.count("stopped") == 1

    with started(tmp_path, rounds=50) as again:
        out, err = again.communicate(timeout=120)
    assert again.returncode == 0, err
    assert "3 of 9 trials were run" in out
