"""`guardband bounds`: every bound of the paper, evaluated for a problem."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import guardband as gb
from guardband import lab
from guardband.cli.numbers import count_option, number_option
from guardband.errors import InvalidValueError

__all__ = ["bounds"]

DELTA = 1e-3
WIDE = 140  # columns of the whole table; a narrow window gets the most important


def bounds(
    named: Annotated[str | None, typer.Argument(hidden=True)] = None,
    problem: Annotated[str, typer.Option(help="Its name; see: guardband problems")] = "movielens",
    alpha: Annotated[
        float | None, number_option("Share of the baseline's reward that may be lost.")
    ] = None,
    rounds: Annotated[int | None, count_option("The horizon T; the problem's own.")] = None,
    agents: Annotated[int | None, count_option("How many tasks learn together.")] = None,
    delta: Annotated[
        str, typer.Option(help="The chance of failure; 'paper' for 1 / (M^2 T).")
    ] = f"{DELTA:g}",
    seed: Annotated[int, count_option("The seed of the problem's world.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Evaluate every bound of the paper for a problem.

    Each is evaluated at its most favourable. The table says whether its condition is met, and
    whether it is better than the trivial bound. For example:

        guardband bounds --problem synthetic-a --rounds 20000
    """
    if named is not None:
        raise InvalidValueError(
            f"a problem is named by an option: guardband bounds --problem {named}"
        )
    from guardband.cli.config import DEFAULT_ALGORITHMS, RunConfig, make_problem

    config = RunConfig(problem=problem, algorithms=DEFAULT_ALGORITHMS, agents=agents)
    task = make_problem(config)
    told = task.assumptions()
    given = lab.bound_setting(
        task.build(seed),
        told,
        horizon=told["rounds"] if rounds is None else rounds,
        alpha=told["alpha"] if alpha is None else alpha,
        delta=_as_delta(delta),
    )
    found = gb.theory.all_bounds(given)
    if as_json:
        typer.echo(json.dumps(_as_object(problem, given, found)))
        return
    console = Console()
    console.print(_facts(problem, given), soft_wrap=True)
    console.print()
    if console.is_terminal and console.width < WIDE:
        console.print(_table(found, wide=False))
    else:
        Console(width=max(console.width, WIDE)).print(_table(found))
    console.print()
    for line in _words(given, found):
        console.print(line, soft_wrap=True)


def _as_delta(text: str) -> float | None:
    if text == "paper":
        return None
    try:
        return float(text)
    except ValueError:
        raise InvalidValueError(f"delta must be a number or 'paper', not {text!r}.") from None


def _facts(problem: str, given: gb.theory.Setting) -> str:
    return (
        f"[bold]{problem}[/bold]: M = {given.agents}, T = {given.horizon:,}, d = {given.dim}, "
        f"alpha = {given.alpha:g}, delta = {given.level:.3g}, lambda = {given.ridge:g}, "
        f"R = {given.noise:g}, S = {given.theta_bound:.4g}, L = {given.feature_bound:.4g}\n"
        f"not known to algorithms: r_b from {given.reward_low:.3g} to {given.reward_high:.3g}, "
        f"kappa_b from {given.gap_low:.3g} to {given.gap_high:.3g}; rho = {given.mixed():.3g}, "
        f"unknown baseline {given.mixed(unknown=True):.3g}"
    )


def _table(found: list[gb.theory.Bound], *, wide: bool = True) -> Table:
    table = Table(box=None, pad_edge=False)
    numbers = ("bound", "true anyway") if wide else ("bound",)
    heads = ("label", "what is bounded", *numbers, *(("condition",) if wide else ()), "verdict")
    for head in heads:
        right = head in numbers
        whole = wide or head != "what is bounded"
        table.add_column(head, justify="right" if right else "left", no_wrap=whole)
    for bound in found:
        told = [bound.label, bound.what, _number(bound.value)]
        if wide:
            told += [_number(bound.trivial), "met" if bound.holds else "not met"]
        table.add_row(*told, bound.verdict)
    return table


def _words(given: gb.theory.Setting, found: list[gb.theory.Bound]) -> list[str]:
    useful = [bound.label for bound in found if bound.holds and not bound.vacuous]
    gate = gb.theory.L2(given)
    first = gate.terms["earliest round"]
    regret = next(bound for bound in found if bound.label == "T1")
    lines = [
        f"{len(dict.fromkeys(useful))} labels have their condition met and beat the trivial bound: "
        + "; ".join(dict.fromkeys(useful))
        + ".",
        f"The gate cannot open before round {math.ceil(first):,}"
        + (f", and there are {given.horizon:,}." if first > given.horizon else "."),
    ]
    if math.isnan(regret.value):
        own, careful = _number(regret.terms["c'"]), _number(regret.terms["c''"])
        lines.append(f"T1 is not a number here: c' = {own}, c'' = {careful}.")
    lines.append("What each says, and what is wrong with it: docs/theory.md.")
    return lines


def _number(value: float) -> str:
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _as_object(
    problem: str, given: gb.theory.Setting, found: list[gb.theory.Bound]
) -> dict[str, Any]:
    known = {name: getattr(given, name) for name in ("agents", "horizon", "dim", "alpha")}
    known["delta"] = given.level
    known |= {
        name: getattr(given, name)
        for name in ("reward_low", "reward_high", "gap_low", "gap_high", "ridge", "noise")
    }
    known |= {"rho": given.mixed(), "rho_unknown": given.mixed(unknown=True)}
    return {
        "problem": problem,
        "setting": known,
        "bounds": [
            {
                "label": bound.label,
                "what": bound.what,
                "value": _plain(bound.value),
                "trivial": _plain(bound.trivial),
                "side": bound.side,
                "holds": bound.holds,
                "vacuous": bound.vacuous,
                "condition": bound.condition,
                "terms": {name: _plain(value) for name, value in bound.terms.items()},
            }
            for bound in found
        ],
    }


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
