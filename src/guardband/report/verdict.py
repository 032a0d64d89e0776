"""What a comparison shows, in one sentence that follows from its numbers by rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from guardband.report.words import floor, listed, number, percent
from guardband.sim import Results, Series
from guardband.sim.stats import interval_half_width

__all__ = ["is_constrained", "never_left", "promises", "verdict", "violates"]

FEW = 5  # with fewer trials an interval is wider than most differences
STUCK = 0.5  # a larger share of rounds is no passing phase


def verdict(results: Results) -> str:
    """Return one plain sentence on what the results show.

    In this order: promises that were broken; constrained algorithms that never left the baseline;
    who fell below the floor and who did not; who has the least regret, and by how much.

    Parameters
    ----------
    results
        What `gb.simulate` returned.

    Returns
    -------
    str
        The sentence.
    """
    clauses = [*_broken(results), *_idle(results), *_violations(results), _regret(results)]
    sentence = "; ".join(clauses) + "."
    if sentence.startswith(tuple(series.label for series in results.series)):
        return sentence  # names are written as they are
    return sentence[0].upper() + sentence[1:]


def is_constrained(series: Series) -> bool:
    """Return whether the algorithm is held to a share of the baseline's reward."""
    return "alpha" in series.settings


def promises(results: Results, series: Series) -> bool:
    """Return whether the algorithm promises at least the floor that violations are counted by."""
    judged = results.settings["alpha"]
    if judged is None or not is_constrained(series):
        return False
    if _frozen(results) and series.settings.get("mode") == "policy":
        return False  # only single plays can be judged there, and policy mode promises none
    return bool(np.all(np.array(series.settings["alpha"]) <= np.array(judged)))


def violates(results: Results, series: Series) -> bool:
    """Return whether any round of any trial fell below the floor in the sense of its promise."""
    return bool((_fallen(results, series) > 0).any())


def never_left(results: Results, series: Series) -> bool:
    """Return whether a constrained algorithm was conservative in every single round."""
    everywhere = (series.conservative == results.settings["rounds"]).all()
    return is_constrained(series) and bool(everywhere)


def _broken(results: Results) -> Iterator[str]:
    trials = results.settings["trials"]
    for series in results.series:
        if promises(results, series) and violates(results, series):
            hit = int((_fallen(results, series) > 0).any(axis=1).sum())
            where = f", in {hit:,} of {trials:,} trials" if trials > 1 else ""
            yield (
                f"{series.label} broke its promise: it fell below {floor(results)} "
                f"in {_rounds(results, series)}{where}"
            )


def _idle(results: Results) -> Iterator[str]:
    idle = [series for series in results.series if never_left(results, series)]
    gated = [series for series in idle if series.settings.get("gate", "none") != "none"]
    share = percent(1.0)
    if gated:
        gates = list(dict.fromkeys(str(series.settings["gate"]) for series in gated))
        which = f"the {listed(gates)} gate{'s' if len(gates) > 1 else ''} never opened"
        who = listed([series.label for series in gated])
        yield f"{which}: {who} played it safe in {share} of the rounds" + _against_baseline(
            results, gated
        )
    free = [series for series in idle if series not in gated]
    if free:
        who = listed([series.label for series in free])
        yield (
            f"{who} found nothing safe enough and stayed at the baseline in {share} of the rounds"
            + (_against_baseline(results, free))
        )
    for series in results.series:
        stuck = float(series.totals.get("stuck", np.zeros(1)).mean()) / results.settings["rounds"]
        if stuck > STUCK:
            yield (
                f"{series.label} was stuck in {percent(stuck)} of the rounds, as no certified "
                "action taught it enough about the most promising one (mode='policy' is not held "
                "back)"
            )


def _against_baseline(results: Results, idle: Sequence[Series]) -> str:
    """Playing it safe is not free: conservative rounds explore, and that costs reward."""
    yardstick = next((s for s in results.series if s.algorithm == "baseline"), None)
    if yardstick is None or len(idle) > 1 or _level(idle[0], yardstick):
        return ""
    own, other = _mean_regret(idle[0]), _mean_regret(yardstick)
    return (
        f", at {own / other:.2g} times the regret of the baseline itself" if own > other > 0 else ""
    )


def _violations(results: Results) -> Iterator[str]:
    if results.settings["alpha"] is None:
        yield "violations were not counted, as there was no alpha to count them by"
        return
    promised = [series for series in results.series if promises(results, series)]
    kept = listed([series.label for series in promised if not violates(results, series)] or [""])
    fell = [
        series for series in results.series if violates(results, series) and series not in promised
    ]
    if fell:
        told = [f"{_name(series)} in {_rounds(results, series)}" for series in fell]
        told[0] = f"{_name(fell[0])} fell below {floor(results)} in {_rounds(results, fell[0])}"
        yield listed(told) + (f", while {kept} {_never(results, promised)}" if kept else "")
    elif any(violates(results, series) for series in promised):
        if kept:
            yield f"{kept} {_never(results, promised)}"
    elif len(results.series) == 1:
        yield f"{results.series[0].label} never fell below {floor(results)}"
    else:
        yield f"no algorithm ever fell below {floor(results)}"


def _never(results: Results, promised: Sequence[Series]) -> str:
    """Return 'never did', in the sense in which that is true of those who kept their promise."""
    kept = [series for series in promised if not violates(results, series)]
    if all((s.violations_expected + s.violations_realised == 0).all() for s in kept):
        return "never did"
    if _frozen(results):
        return "never did as drawn (features carry a fixed error here: expectations prove nothing)"
    return "never did in the sense of their promise, which is an expectation"


def _regret(results: Results) -> str:
    ranked = sorted(results.series, key=_mean_regret)
    best = ranked[0]
    amount = f"{number(_mean_regret(best))} per agent"
    if results.settings["trials"] == 1:
        amount += ", in a single trial"
    if len(ranked) == 1:
        return f"the regret of {best.label} is {amount}"
    level = [series for series in ranked if series is best or _level(series, best)]
    behind = [series for series in ranked if series not in level]
    who = listed([series.label for series in level])
    trials = results.settings["trials"]
    if len(level) > 1 and 1 < trials < FEW:
        return (
            f"{best.label} has the least regret so far ({amount}), but {trials} trials rank nobody"
        )
    if not behind:
        return f"the regrets of {who} cannot be told apart ({amount})"
    if len(level) > 1:
        lead = f"{who} have the least regret and cannot be told apart ({amount})"
    elif best.algorithm == "baseline":
        lead = f"nothing beat always playing the baseline, which has the least regret ({amount})"
    else:
        lead = f"{best.label} has the least regret ({amount})"
    safe = [series for series in ranked if is_constrained(series)]
    if safe and not any(is_constrained(series) for series in level):
        role = "the best of the constrained" if len(safe) > 1 else "the constrained one"
        if safe[0].settings.get("gate") == "gap":
            role += " (though told the true optimum)"
        return f"{lead}, and {safe[0].label}, {role}, has {_compared(safe[0], best)}"
    return f"{lead}, followed by {behind[0].label} with {_compared(behind[0], best)}"


def _counts(results: Results, series: Series) -> dict[str, np.ndarray]:
    """Return the violations (trials, M) that bear on a promise, by kind.

    Guard-UCB promises expectations: of each play, or of the randomised choice. Where psi is phi
    with noise frozen into it, psi'theta is nobody's expectation, and only what was realised counts.
    """
    if _frozen(results):
        return {"realised": series.violations_realised}
    if series.algorithm.startswith("guard-ucb") and series.settings.get("realised") is None:
        if series.settings.get("mode") == "policy":
            return {"of the randomised choice": series.totals["violations_policy"]}
        return {"expected": series.violations_expected}
    return {"expected": series.violations_expected, "realised": series.violations_realised}


def _frozen(results: Results) -> bool:
    """Return whether psi is phi with noise frozen into it, and so nobody's expectation."""
    problem = results.settings.get("problem", {})
    noisy = isinstance(problem, dict) and problem.get("nature") == "frozen"
    return bool(noisy and problem.get("psi_noise", 1.0) > 0)


def _fallen(results: Results, series: Series) -> np.ndarray:
    return np.asarray(sum(_counts(results, series).values()))


def _rounds(results: Results, series: Series) -> str:
    counts = {k: number(float(v.mean())) for k, v in _counts(results, series).items()}
    if len(set(counts.values())) == 1:
        (count,) = set(counts.values())
        return f"{count} {'round' if count == '1' else 'rounds'} per agent"
    told = listed([f"{count} ({kind})" for kind, count in counts.items()])
    return f"{told} rounds per agent"


def _name(series: Series) -> str:
    return f"{series.label} (which promises less)" if is_constrained(series) else series.label


def _mean_regret(series: Series) -> float:
    return float(series.regret.mean())


def _level(one: Series, other: Series) -> bool:
    """Return whether 0 lies in the interval of the difference; trials are pairs of equal draws."""
    apart = (one.regret - other.regret).mean(axis=1)
    half = np.nan_to_num(interval_half_width(apart))  # a single trial: level if equal
    return bool(abs(apart.mean()) <= half)


def _compared(more: Series, less: Series) -> str:
    large, small = _mean_regret(more), _mean_regret(less)
    if small <= 0:  # regret in realised features may be negative: no factor to speak of
        return number(large)
    factor = large / small
    if factor < 1.1:
        return f"{number(100 * (factor - 1))} % more"
    return f"{factor:.2g} times as much" if factor < 10 else f"{factor:,.0f} times as much"
