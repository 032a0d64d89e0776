"""Which commit is measured: read when a measurement begins, as others may commit meanwhile."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["commit_now", "today"]

ROOT = Path(__file__).parents[1]


def commit_now(root: Path = ROOT) -> str:
    """Return the commit that is checked out, with a mark where files differ from it."""
    commit = _git(root, "rev-parse", "--short", "HEAD") or "no commit"
    return f"{commit} and changes" if _git(root, "status", "--porcelain") else commit


def today() -> str:
    """Return the day, for the pages that measurements write."""
    return datetime.now(UTC).date().isoformat()


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip()
