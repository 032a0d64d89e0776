"""Numbers in words, as the dashboard and the command line show them."""

from __future__ import annotations

import math

__all__ = [
    "as_sentence",
    "chance",
    "count",
    "known",
    "margin",
    "percent",
    "short",
    "signed",
    "span",
]

UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def known(x: float | None) -> bool:
    """Tell whether there is a number at all."""
    return x is not None and math.isfinite(x)


def count(x: float | None) -> str:
    """1234567 -> "1.23 M"; below ten thousand every digit counts."""
    if x is None or not math.isfinite(x):
        return "–"
    if abs(x) < 1e4:
        return f"{x:,.0f}"
    scale, unit = next(each for each in UNITS if abs(x) >= each[0])
    return f"{float(f'{x / scale:.3g}'):g} {unit}"


def signed(x: float | None, digits: int = 3) -> str:
    """0.1234 -> "+0.123"."""
    if x is None or not math.isfinite(x):
        return "–"
    return f"{'−' if x < 0 else '+'}{abs(x):.{digits}f}"


def margin(x: float | None) -> str:
    """Show a margin: however small, it is not zero."""
    if x is None or not math.isfinite(x) or x == 0.0 or abs(x) >= 1e-3:
        return signed(x)
    small, _, power = f"{abs(x):.0e}".partition("e")
    return signed(x, 4) if abs(x) >= 1e-4 else f"{'−' if x < 0 else '+'}{small}e{int(power)}"


def percent(x: float | None) -> str:
    """0.0123 -> "1.2 %"."""
    if x is None or not math.isfinite(x):
        return "–"
    p = 100.0 * x
    fine = p != 0.0 and abs(p) < 9.95 and abs(p - round(p)) > 0.04
    return f"{p:.{int(fine)}f} %"


def chance(x: float) -> str:
    """Show a probability, however small."""
    return f"{float(f'{100.0 * x:.2g}'):g} %"


def short(x: float) -> str:
    """Show an amount with three digits that count."""
    return (f"{x:.3g}" if abs(x) < 1e3 else count(x)).replace("-", "−")


def span(s: float | None) -> str:
    """75 -> "75 s", 4000 -> "67 min"."""
    if s is None or not math.isfinite(s):
        return "–"
    if s < 100.0:
        return f"{max(0, round(s))} s"
    if s < 6000.0:
        return f"{round(s / 60.0)} min"
    return f"{s / 3600.0:.1f} h" if s < 172_800.0 else f"{round(s / 86_400.0)} days"


def as_sentence(text: str) -> str:
    """Make a sentence: `no news` becomes `No news.`."""
    whole = text.strip()
    if not whole:
        return ""
    return whole[0].upper() + whole[1:] + ("" if whole[-1] in ".!?" else ".")
