"""Systems that are not Unix."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, time
sys.modules["fcntl"] = sys.modules["resource"] = None
for module, names in ((os, ["fork", "register_at_fork"]), (time, ["clock_gettime"])):
    for name in names + [n for n in dir(module) if n.startswith("CLOCK_")]:
        if hasattr(module, name):
            delattr(module, name)
import guardband
"""


@pytest.mark.skipif(sys.platform == "win32", reason="that is elsewhere")
def test_guardband_is_imported_where_nothing_forks() -> None:
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, timeout=300)
