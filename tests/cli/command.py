"""Commands as tests give them, and what they answer."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from guardband.cli.app import app, main

SMALL = ("--problem", "synthetic-a", "--rounds", "50", "--trials", "2")


def answer(*words: str) -> str:
    """Return standard output of a command that succeeds."""
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refuse(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return standard error of a command that fails with exit code 2, and without a traceback."""
    monkeypatch.setattr(sys, "argv", ["guardband", *words])
    monkeypatch.setattr("warnings.showwarning", None)  # main sets it; this sets it back
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err


def started(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "guardband", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "200"},
    )
