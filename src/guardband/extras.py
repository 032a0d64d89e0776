"""How to install what an extra brings: errors, notes and the command line say it in one way."""

from __future__ import annotations

__all__ = ["how_to_install"]


def how_to_install(extra: str) -> str:
    """Return the command that adds an extra, for the package and for a checkout of it.

    Both, because nobody can tell which one it is: a checkout may have no release on the index yet.
    """
    return f"pip install 'guardband[{extra}]' (in a checkout: pip install '.[{extra}]')"
