"""Results made by hand, to test one rule at a time."""

import numpy as np

from guardband.sim.results import Results, Series

ROUNDS = 100
CONSTRAINED = {"alpha": 0.3, "gate": "printed"}


def series(
    label,
    regret,
    *,
    expected=0.0,
    realised=None,
    policy=None,
    safe=0.0,
    trials_made=0.0,
    short=0.0,
    settings=None,
    algorithm=None,
):
    """Make a series by hand: numbers, or one per trial; two agents that fare alike."""
    trials = max(np.size(regret), np.size(expected), 2)
    metrics = {
        "regret": regret,
        "regret_expected": regret,
        "violations_expected": expected,
        "violations_realised": expected if realised is None else realised,
        "conservative": safe * ROUNDS,
        "reward": 70.0,
        "baseline_reward": 50.0,
        "violations_policy": expected if policy is None else policy,
        "stuck": 0.0,
        "refuted": 0.0,
        "trials": trials_made,
        "charged": 2.0 * short,
        "shortfall": short,
        "violations_trial": expected if trials_made else 0.0,
        "value": np.nan,  # these actions have no values and no costs
        "cost": np.nan,
    }
    totals = {
        name: np.tile(np.broadcast_to(np.asarray(value, float), trials)[:, None], (1, 2))
        for name, value in metrics.items()
    }
    return Series(
        algorithm=algorithm or label,
        label=label,
        settings=dict(settings or {}),
        totals=totals,
        curves={name: value[:, None, :] for name, value in totals.items()},
        sync_rounds=np.full(trials, 3),
        sync_curve=np.full((trials, 1), 3),
        numbers_sent=np.full(trials, 30),
    )


def compare(*all_series, alpha=0.3, problem="tabular", uncovered=None):
    settings = {
        "problem": {"name": problem},
        "agents": 2,
        "rounds": ROUNDS,
        "trials": len(all_series[0].regret),
        "seed": 7,
        "alpha": None if alpha is None else [alpha] * 2,
        "replayed": False,
        "seconds": 1.5,
        "versions": {"python": "3.x", "guardband": "0.x"},
        "commit": "abc123+",
    }
    return Results(problem, settings, all_series, np.array([ROUNDS]), uncovered=uncovered)


DISC = series("disc-ucb", [200, 202], settings=CONSTRAINED, safe=0.4)
FREE = series("dis-lin-ucb", [50, 51], expected=[4, 6])
BASELINE = series("baseline", [150, 152], safe=1.0)
SHUT = series("disc-ucb", [300, 304], settings=CONSTRAINED, safe=1.0)
