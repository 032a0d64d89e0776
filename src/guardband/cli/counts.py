"""Whole numbers on the command line: 1e5, 100_000 and 100,000 are such, too."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import typer

__all__ = ["count_option"]

MOST_DIGITS = 30  # what counts something says itself how much is too much


def count_option(help_: str, **more: Any) -> Any:
    """Return an option that takes a whole number, however it is written."""
    return typer.Option(help=help_, parser=_whole, metavar="<int>", **more)


def _whole(text: object) -> int:
    try:
        value = Decimal(str(text).replace(",", ""))  # underscores are its own
    except InvalidOperation:
        raise _refusal(text) from None
    whole = value.is_finite() and value.adjusted() < MOST_DIGITS
    if not (whole and value == value.to_integral_value()):
        raise _refusal(text)
    return int(value)


def _refusal(text: object) -> typer.BadParameter:
    return typer.BadParameter(f"{text!r} is no whole number; write 100000, 100_000 or 1e5.")
