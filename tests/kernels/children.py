"""Processes of their own, with caches of their own, for tests of how kernels start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

__all__ = ["child"]


def child(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the code with the cache in this folder, which is empty at first."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    (folder / "tmp").mkdir(exist_ok=True)
    env |= {"NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done
