"""Names that other modules still look for here; they live in `guardband.cli.operator`."""

from guardband.cli.operator import open_store, plainly

__all__ = ["open_store", "plainly"]
