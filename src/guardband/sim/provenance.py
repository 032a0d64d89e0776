"""Where results come from: versions and commit."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["commit", "versions"]


@cache
def versions() -> dict[str, str]:
    """Return the versions that numbers may depend on."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for package in ("guardband", "numpy", "numba", "llvmlite"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@cache
def commit() -> str | None:
    """Return the commit of the checkout this package runs from, with + if it was edited."""
    here = Path(__file__).resolve().parents[1]
    if here.parent.name != "src":  # an installed copy: the version says it all
        return None
    try:
        name = _git(here, "rev-parse", "HEAD")
        edited = _git(here, "status", "--porcelain", "--", str(here))
    except (OSError, subprocess.SubprocessError):
        return None
    return name + ("+" if edited else "")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
    )
    return done.stdout.strip()
