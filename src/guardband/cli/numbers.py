"""Numbers on the command line; whole ones may be written 1e5, 100_000 and 100,000, too."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

import typer

__all__ = ["count_option", "number_argument", "number_option", "port_option"]

MOST_DIGITS = 30  # what counts something says itself how much is too much
LAST_PORT = 65_535


def count_option(help_: str, **more: Any) -> Any:
    """Return an option that takes a whole number, however it is written."""
    return typer.Option(help=help_, parser=_whole, metavar="<int>", **more)


def number_option(help_: str, least: float = -math.inf, most: float = math.inf) -> Any:
    """Return an option that takes a number."""
    return typer.Option(help=help_, parser=_number(least, most), metavar="<float>")


def number_argument(help_: str) -> Any:
    """Return an argument that takes a number."""
    return typer.Argument(help=help_, parser=_number())


def port_option(help_: str) -> Any:
    """Return an option that takes a port."""
    return typer.Option(help=help_, parser=_port, metavar="<int>")


def _whole(text: object) -> int:
    refusal = typer.BadParameter(f"{text!r} is no whole number; write 100000, 100_000 or 1e5.")
    try:
        value = Decimal(str(text).replace(",", ""))  # underscores are its own
    except InvalidOperation:
        raise refusal from None
    whole = value.is_finite() and value.adjusted() < MOST_DIGITS
    if not (whole and value == value.to_integral_value()):
        raise refusal
    return int(value)


def _number(least: float = -math.inf, most: float = math.inf) -> Callable[[object], float]:
    """Return a function that reads a number from `least` to `most`."""

    def number(text: object) -> float:
        value = _as_float(str(text))
        if not math.isfinite(value):
            share = _as_float(str(text).rstrip().removesuffix("%")) / 100
            instead = f"{share:g}" if math.isfinite(share) else "0.1 or 1e-3"
            raise typer.BadParameter(f"{text!r} is no number; write {instead}.")
        if value < least:
            raise typer.BadParameter(f"{text!r} is too small: the least is {least:g}.")
        if value > most:
            raise typer.BadParameter(f"{text!r} is too large: the most is {most:g}.")
        return value

    return number


def _as_float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _port(text: object) -> int:
    try:
        port = int(str(text))
    except ValueError:
        port = -1
    if not 0 <= port <= LAST_PORT:
        raise typer.BadParameter(
            f"{text!r} is no port; write a whole number from 0 to {LAST_PORT}, such as 8710."
        )
    return port
