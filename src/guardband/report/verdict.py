"""What a comparison shows, in plain sentences that follow from its numbers by rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from guardband.report.noticed import noticed
from guardband.report.promises import (
    below_floor,
    is_constrained,
    is_frozen,
    is_policy,
    needs_model,
    never_left,
    promised_counts,
    promises,
    uncovered,
    violates,
)
from guardband.report.words import floor, has_values, listed, number, percent
from guardband.sim import Results, Series, interval_half_width
from guardband.uplift import LEVEL

__all__ = ["verdict"]

FEW = 5  # with fewer trials an interval is wider than most differences
FLOOR = "the floor"
CHOICE = "the expected reward of its randomised choice"  # what policy mode promises
STUCK = 0.5  # a larger share of rounds is no passing phase


def verdict(results: Results) -> list[str]:
    """Return what the results show, one sentence or two for every group of algorithms.

    In this order: Guard-UCB; promises that others broke; what monitors noticed; constrained
    algorithms that never left the baseline; others that kept the floor; those who promise nothing;
    who lost least.

    Parameters
    ----------
    results
        What `gb.simulate` returned.

    Returns
    -------
    list of str
        The sentences.
    """
    found: list[str] = []
    if results.settings["alpha"] is None:
        found.append("violations were not counted, as there was no alpha to count them by")
    else:
        found += [*_guard(results), *_broken(results)]
    found += [*noticed(results), *_stuck(results), *_idle(results)]
    if results.settings["alpha"] is not None:
        found += [*_kept(results), *_fell(results)]
    found += [*_earned(results), _worth(results) if has_values(results) else _regret(results)]
    # What the floor is stands where it is first spoken of.
    first = next((i for i, sentence in enumerate(found) if FLOOR in sentence), None)
    if first is not None:
        found[first] = found[first].replace(FLOOR, f"{FLOOR} ({floor(results)})", 1)
    names = tuple(series.label for series in results.series)
    # Names are written as they are.
    return [s + "." if s.startswith(names) else s[0].upper() + s[1:] + "." for s in found]


def _guard(results: Results) -> Iterator[str]:
    """Say of Guard-UCB whether a promise of it applies here, and whether it was kept."""
    guards = [series for series in results.series if needs_model(series)]
    why = dict.fromkeys(filter(None, (uncovered(results, series) for series in guards)))
    for reason in why:
        told = [_told(results, s) for s in guards if uncovered(results, s) == reason]
        yield f"no promise of Guard-UCB applies here ({reason}): {listed(told)}"
    for series in guards:
        if uncovered(results, series):
            continue
        if not promises(results, series):
            yield f"{_told(results, series)}; it was told to promise less"
        elif violates(results, series):
            yield _broke(results, series)
        elif is_policy(series) and below_floor(results, series).any():
            yield (
                f"{series.label} kept its promise: {_plays(results, series)} {FLOOR}"
                f"{_in_runs(results)}; its promise is about {CHOICE}, which was "
                "never below the floor"
            )
        elif below_floor(results, series).any():
            yield (
                f"{series.label} kept its promise: trials aside it was never below {FLOOR}, and "
                f"{_trials(series)}"
            )
        else:
            yield f"{series.label} kept its promise: it was never below {FLOOR}"


def _broken(results: Results) -> Iterator[str]:
    for series in results.series:
        others = promises(results, series) and not needs_model(series)
        if others and violates(results, series):
            yield _broke(results, series)


def _broke(results: Results, series: Series) -> str:
    counts, trials = promised_counts(results, series), results.settings["trials"]
    hit = int((counts > 0).any(axis=1).sum())
    where = f", in {hit:,} of {trials:,} trials" if trials > 1 else ""
    what = f"{CHOICE} was" if is_policy(series) else "it was"
    whose = "the promise that the paper makes for it" if series.policy.of_paper else "its promise"
    return (
        f"{series.label} broke {whose}: {what} below {FLOOR} in "
        f"{_rounds(counts)}{_in_runs(results)}{where}"
    )


def _stuck(results: Results) -> Iterator[str]:
    for series in results.series:
        stuck = float(series.totals.get("stuck", np.zeros(1)).mean()) / results.settings["rounds"]
        if stuck > STUCK:
            yield (
                f"{series.label} was stuck in {percent(stuck)} of the rounds, as no certified "
                "action taught it enough about the most promising one (mode='policy' is not held "
                "back)"
            )


def _idle(results: Results) -> Iterator[str]:
    idle = [series for series in results.series if never_left(results, series)]
    gated = [series for series in idle if series.settings.get("gate", "none") != "none"]
    if gated:
        who = listed([series.label for series in gated])
        papers = all(series.policy.of_paper for series in gated)
        own = "the paper's condition for doing so (its gate)" if papers else "the gate for that"
        yield f"{who} never left the baseline: {own} was never met" + _price(results, gated)
    free = [series for series in idle if series not in gated]
    if free:
        who = listed([series.label for series in free])
        yield f"{who} never left the baseline: nothing else looked safe enough" + _price(
            results, free
        )


def _price(results: Results, idle: Sequence[Series]) -> str:
    """Playing it safe is not free: conservative rounds explore, and that costs reward."""
    reference = next((s for s in results.series if s.policy.always_baseline), None)
    if reference is None or any(_level(one, reference) for one in idle):
        return ""
    least, other = min(_mean_regret(one) for one in idle), _mean_regret(reference)
    if not least > other > 0:
        return ""
    return f", and {'their' if len(idle) > 1 else 'its'} exploration cost reward"


def _kept(results: Results) -> Iterator[str]:
    """Name those beside Guard-UCB that kept the floor and did leave the baseline."""
    kept = [
        series.label
        for series in results.series
        if promises(results, series)
        and not (violates(results, series) or needs_model(series) or never_left(results, series))
    ]
    if kept:
        yield f"{listed(kept)} {'was' if len(kept) == 1 else 'were'} never below {FLOOR}"


def _fell(results: Results) -> Iterator[str]:
    for series in results.series:
        if needs_model(series) or promises(results, series):
            continue
        counts = below_floor(results, series)
        if not counts.any():
            continue
        drawn = " as drawn" if is_frozen(results) else ""
        yield (
            f"{series.label}{_without_promise(results, series)} was below {FLOOR}{drawn} "
            f"in {_rounds(counts)}{_in_runs(results)}"
        )


def _without_promise(results: Results, series: Series) -> str:
    """Return why nothing is said of a promise."""
    if reason := uncovered(results, series):
        return f" (no promise of it applies here: {reason})"
    if not is_constrained(series):
        return "" if series.policy.always_baseline else ", which promises nothing,"
    return ", which promises less,"


def _told(results: Results, series: Series) -> str:
    """Return how often the algorithm was below the floor, without a word on promises."""
    counts = below_floor(results, series)
    drawn = " as drawn" if is_frozen(results) else ""
    if not counts.any():
        return f"{series.label} was never below {FLOOR}{drawn}"
    if is_policy(series) and not (drawn or series.totals["violations_policy"].any()):
        return (
            f"{series.label} had {_plays(results, series)} {FLOOR}{_in_runs(results)}, though "
            f"{CHOICE} never was"
        )
    return f"{series.label} was below {FLOOR}{drawn} in {_rounds(counts)}{_in_runs(results)}"


def _plays(results: Results, series: Series) -> str:
    many = int(below_floor(results, series).sum())
    return f"{many:,} single {'play' if many == 1 else 'plays'} below"


def _trials(series: Series) -> str:
    """Return how many trials there were in a run, and what they fell short by at most."""
    trials, worst = series.totals["trials"].mean(), series.totals["shortfall"].max()
    budget = series.settings["trial_budget"]
    return (
        f"its trials ({number(float(trials))} per agent run) fell short of it by at most "
        f"{number(float(worst))} in a run, of a budget of {number(budget)}"
    )


def _earned(results: Results) -> Iterator[str]:
    """Say what holdbacks measured, and whether their intervals hold what was really earned."""
    rounds, trials = results.settings["rounds"], results.settings["trials"]
    for series in results.series:
        if not series.settings.get("holdback"):
            continue
        told = series.uplift(rounds)
        truth = series.totals["lead"].mean(axis=1) / rounds
        held = sum(each.low <= lead <= each.high for each, lead in zip(told, truth, strict=True))
        low, high = (np.mean([getattr(each, name) for each in told]) for name in ("low", "high"))
        mean = number(float(np.mean([each.mean for each in told])))
        where = f", and does in {held:,} of {trials:,} trials" if trials > 1 else ""
        yield (
            f"{series.label} measured by its holdback of {percent(series.settings['holdback'])} "
            f"that its choices earn {mean} per round over the baseline (between "
            f"{number(float(low))} and {number(float(high))}); the truth is "
            f"{number(float(truth.mean()))}, which the interval holds with probability "
            f"{percent(LEVEL)}{where}"
        )


def _rounds(counts: np.ndarray) -> str:
    total = int(counts.sum())
    return f"{total:,} {'round' if total == 1 else 'rounds'}"


def _in_runs(results: Results) -> str:
    """Return over how many runs of an agent a count is a sum."""
    runs = results.settings["agents"] * results.settings["trials"]
    return f" in {runs:,} agent runs" if runs > 1 else ""


def _worth(results: Results) -> str:
    """Say who had the most value of those that kept the floor, as promised; rewards only guard."""
    rounds, judged = results.settings["rounds"], results.settings["alpha"] is not None
    own = [series for series in results.series if not series.policy.always_baseline]
    safe = [series for series in own if not judged or _keeps(results, series)]
    whose = f"of those that kept {FLOOR}" if judged else "of all"
    if not safe:
        return f"values say little here: none but the baseline kept {FLOOR}"
    best = max(safe, key=lambda series: float(series.totals["value"].mean()))
    value, baseline, lost = (
        float(best.totals[name].mean()) / rounds
        for name in ("value", "baseline_value", "value_regret")
    )
    told = f"{best.label} had the most value {whose}: {number(value)} per round, against the "
    told += f"baseline's {number(baseline)}"
    if not np.isnan(lost):
        told += f"; always knowing the best safe action is worth {number(value + lost)}"
    return told


def _keeps(results: Results, series: Series) -> bool:
    """Return whether it kept what it promises, or was never below the floor without a promise."""
    if promises(results, series):
        return not violates(results, series)
    return not below_floor(results, series).any()


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
        few = f"{trials} trials are too few to rank them"
        return f"{best.label} has the least regret so far ({amount}), but {few}"
    if not behind:
        return f"the regrets of {who} cannot be told apart ({amount})"
    if len(level) > 1:
        lead = f"{who} have the least regret and cannot be told apart ({amount})"
    elif best.policy.always_baseline:
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
