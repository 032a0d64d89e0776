"""Where there is no Unix: library, simulator, lab and command line work, the rest says why not."""

from __future__ import annotations

import subprocess
import sys

# What Windows does not have; `None` makes an import of it fail.
WITHOUT_UNIX = """
import os, sys
for name in ("fcntl", "resource"):
    sys.modules[name] = None
for name in ("fork", "nice", "register_at_fork", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
"""


def without_unix(code: str) -> str:
    asked = [sys.executable, "-c", WITHOUT_UNIX + code]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_library_simulator_and_lab() -> None:
    printed = without_unix("""
import guardband as gb
agent = gb.Agent(2)
agent.observe(agent.decide([[0.3, 0.1], [0.1, 0.3]], baseline=0), 0.5)
results = gb.simulate("toy", ["guard-ucb"], rounds=20, trials=2, progress=False)
import guardband.lab, guardband.studies, guardband.report, guardband.envs
from typer.testing import CliRunner
from guardband.cli.app import app
print(agent.rounds, CliRunner().invoke(app, ["--help"]).exit_code)
""")
    assert printed == "1 0\n"


def test_the_live_system_says_what_it_needs() -> None:
    printed = without_unix("""
import guardband as gb
try:
    gb.connect
except ImportError as error:
    print(error)
""")
    assert printed == "live agents and coordinators need Linux or macOS.\n"


def test_commands_of_the_live_system_say_so_too() -> None:
    printed = without_unix("""
from typer.testing import CliRunner
from guardband.cli.app import app
found = CliRunner().invoke(app, ["serve"])
print(found.exit_code, found.output, found.exception)
""")
    assert "need Linux or macOS" in printed
    assert "Traceback" not in printed
