"""From a DataFrame of what an old rule showed, and what was clicked, to a safe agent.

A shop shows one of six offers on its first page. Its rule shows the offer that the editors chose,
and now and then another one. Its logs have one row per visit. The study looks at the first half of
them and writes agent.toml; the agent learns the other half, and goes to work.

    python examples/clicks/clicks.py    # writes study.html and agent.toml to ./clicks-study
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import guardband as gb

OFFERS = pd.DataFrame(
    {
        "format": ["film", "film", "series", "series", "short", "short"],
        "minutes": [95, 140, 45, 50, 8, 12],
    },
    index=["Heat", "Ran", "Dark", "Lost", "Bao", "Piper"],
)
CHOSEN = "Ran"  # by the editors: the baseline
SEGMENTS = ["evening", "lunch"]
FEATURES = gb.Features(
    numbers={"minutes": (5, 240, "log")},
    categories={"format": ["film", "series", "short"], "segment": SEGMENTS},
    crosses=[("format", "segment")],
)


def click_rates(rows: pd.DataFrame) -> np.ndarray:
    """Return how often rows are clicked: what nobody knows, and this example must make up."""
    taste = {"evening": {"film": 0.22, "series": 0.3, "short": 0.08}}
    taste["lunch"] = {"film": 0.05, "series": 0.14, "short": 0.3}
    base = [taste[s][f] for s, f in zip(rows["segment"], rows["format"], strict=True)]
    return np.array(base) - 0.02 * np.log(rows["minutes"].to_numpy(float) / 45)


def old_logs(visits: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the logs of the old rule: the editors' choice 7 times of 10, else any offer."""
    any_offer = rng.random(visits) < 0.3
    shown = np.where(any_offer, rng.choice(OFFERS.index, visits), CHOSEN)
    rows = pd.DataFrame({"visit": [f"v{i}" for i in range(visits)], "offer": shown})
    rows["segment"] = rng.choice(SEGMENTS, visits)
    rows = rows.join(OFFERS, on="offer")
    rows["propensity"] = np.where(rows["offer"] == CHOSEN, 0.7 + 0.3 / 6, 0.3 / 6)
    rows["clicked"] = (rng.random(visits) < click_rates(rows)).astype(float)
    return rows


def study_of(logs: pd.DataFrame, rounds: int) -> gb.Study:
    """Return what the logs say before anything is switched on."""
    return gb.study(
        logs,
        reward="clicked",
        action="offer",
        features=FEATURES,
        propensity="propensity",
        id="visit",
        rounds=rounds,
    )


def serve(agent: gb.Agent, visits: int, rng: np.random.Generator) -> dict[str, float]:
    """Let the agent choose for visitors; return its clicks and those of the editors' choice."""
    clicks = editors = learned = 0.0
    for _ in range(visits):
        menu = OFFERS.assign(segment=rng.choice(SEGMENTS))
        decision = agent.decide(menu, baseline=CHOSEN)
        rates = pd.Series(click_rates(menu), menu.index)
        agent.observe(decision, float(rng.random() < rates[decision.label]))
        clicks, editors = clicks + rates[decision.label], editors + rates[CHOSEN]
        learned += decision.kind == "learned"
    return {"gain": clicks / editors - 1, "learned": learned / visits}


def run(out: Path, visits: int = 40_000, rounds: int = 2_000, seed: int = 0) -> dict[str, float]:
    """Study logs, write what was found to `out`, and let the agent that comes of it work."""
    rng = np.random.default_rng(seed)
    logs = old_logs(visits, rng)
    study = study_of(logs, rounds)
    print(study.recommendation)
    print("the study:", study.save(out))

    agent = gb.Agent.from_file(out / "agent.toml")
    rest = logs.iloc[len(study.logs) :]  # the rows that the study did not look at
    learned = agent.learn(rest, rest["clicked"], ids=rest["visit"])
    print(f"{learned.rows:,} rows learned")
    return serve(agent, rounds, rng)


def main() -> None:
    """Print what the agent's first visits earn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("clicks-study"), help="for the study")
    parser.add_argument("--visits", type=int, default=40_000, help="in the old logs")
    parser.add_argument("--rounds", type=int, default=2_000, help="of the agent")
    given = parser.parse_args()
    found = run(given.out, given.visits, given.rounds)
    print(
        f"{given.rounds:,} visits: {found['gain']:+.0%} clicks over the editors' choice, "
        f"{found['learned']:.0%} learned plays"
    )


if __name__ == "__main__":
    main()
