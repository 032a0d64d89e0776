"""The command line."""

from __future__ import annotations

import sys

__all__ = ["main"]

STOPPED = 130


def main() -> None:
    """Run the command `guardband`; Ctrl-C shows no traceback, not even during imports."""
    try:
        if sys.argv[1:] == ["--version"]:  # needs nothing loaded
            from importlib.metadata import version

            sys.stdout.write(f"guardband {version('guardband')}\n")
            return
        from guardband.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("stopped.\n")
        sys.exit(STOPPED)
