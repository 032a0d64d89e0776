"""The command line."""

from guardband.cli.app import main

__all__ = ["main"]
