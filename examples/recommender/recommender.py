"""From ratings of films to a running agent, which never falls far below a trusted rule.

The trusted rule shows the most popular of ten films. Ratings are split at random: on one half a
model of tastes is fitted, which gives the features; the agent learns a quarter as logs; the last
quarter is held out. In every round somebody comes to ten films that they have rated in the held-out
quarter, the agent shows one of them, and gets the real rating as its reward.

    guardband data fetch movielens                # once; or: guardband data import movielens u.data
    python examples/recommender/recommender.py    # without the ratings: --made-up
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
import pandas as pd

import guardband as gb
from guardband import data

OFFERED = 10  # films in a round
FACTORS, SHRINKAGE = 8, 10.0  # of the model of tastes
COLUMNS = ["user", "film", "stars"]
FEATURES = gb.Features(
    numbers={
        "predicted": (1, 5),  # stars, by the model of tastes
        "film_mean": (1, 5),  # stars of the film, drawn to the mean of all
        "user_mean": (1, 5),  # the same of the user
        "seen": (1, 600, "log"),  # how often the film was rated
    }
)


@dataclass
class Tastes:
    """What the first half of the ratings says of users and films."""

    predicted: np.ndarray  # (users, films), in stars
    film_mean: np.ndarray
    user_mean: np.ndarray
    seen: np.ndarray

    def describe(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the features' columns for users and films."""
        user, film = rows["user"].to_numpy(), rows["film"].to_numpy()
        return pd.DataFrame(
            {
                "predicted": self.predicted[user, film],
                "film_mean": self.film_mean[film],
                "user_mean": self.user_mean[user],
                "seen": np.maximum(1, self.seen[film]),
            },
            index=rows["film"],
        )


def read_ratings() -> pd.DataFrame:
    """Return the ratings of MovieLens-100K from where `guardband data` keeps them."""
    path = data.find("movielens")
    if path is None:
        raise SystemExit(
            "The ratings are not here: guardband data fetch movielens, or try --made-up."
        )
    rows = pd.read_csv(path, sep="\t", names=[*COLUMNS, "time"])
    return rows.assign(user=rows["user"] - 1, film=rows["film"] - 1)[COLUMNS]


def made_up_ratings(seed: int, users: int = 300, films: int = 200) -> pd.DataFrame:
    """Return ratings of people that do not exist; popular films are not the best ones."""
    rng = np.random.default_rng(seed)
    taste, kind = rng.normal(size=(users, 3)), rng.normal(size=(films, 3))
    quality, shown = rng.normal(0, 0.5, films), rng.exponential(size=films)
    rated = rng.random((users, films)) < np.clip(0.25 * shown, 0, 0.9)
    user, film = np.nonzero(rated)
    liking = 3.4 + quality[film] + 0.6 * (taste[user] * kind[film]).sum(axis=1)
    stars = np.clip(np.round(liking + rng.normal(0, 0.8, len(user))), 1, 5)
    return pd.DataFrame({"user": user, "film": film, "stars": stars})


def fit(rows: pd.DataFrame, users: int, films: int) -> Tastes:
    """Fit means and factors to ratings; all of it drawn to the mean where there are few."""
    user, film = rows["user"].to_numpy(), rows["film"].to_numpy()
    stars = rows["stars"].to_numpy(float)
    mean = stars.mean()
    seen = np.bincount(film, minlength=films)
    film_bias = np.bincount(film, stars - mean, films) / (seen + SHRINKAGE)
    rest = stars - mean - film_bias[film]
    user_bias = np.bincount(user, rest, users) / (np.bincount(user, minlength=users) + SHRINKAGE)
    table = np.zeros((users, films))
    table[user, film] = rest - user_bias[user]
    left, sizes, right = np.linalg.svd(table, full_matrices=False)
    sizes = np.maximum(sizes[:FACTORS] - sizes[FACTORS], 0.0)
    factors = (left[:, :FACTORS] * sizes) @ right[:FACTORS]
    predicted = mean + film_bias + user_bias[:, None] + factors
    return Tastes(np.clip(predicted, 1, 5), mean + film_bias, mean + user_bias, seen)


def rewards(rows: pd.DataFrame) -> np.ndarray:
    """Return stars as rewards in [0, 1]."""
    return (rows["stars"].to_numpy(float) - 1) / 4


def offers(held_out: pd.DataFrame, rounds: int, rng: np.random.Generator) -> list[pd.DataFrame]:
    """Return rounds: ten films that one person has rated, among people that have rated as many."""
    by_user = [rows for _, rows in held_out.groupby("user") if len(rows) >= OFFERED]
    who = rng.integers(len(by_user), size=rounds)
    return [by_user[i].sample(OFFERED, random_state=rng) for i in who]


def run(ratings: pd.DataFrame, rounds: int = 1000, seed: int = 0, alpha: float = 0.1) -> dict:
    """Return what the agent earned in its rounds, beside the rule and the best of each round."""
    rng = np.random.default_rng(seed)
    part = rng.permutation(len(ratings)) % 4  # two quarters to fit, one to learn, one held out
    tastes = fit(ratings[part < 2], ratings["user"].max() + 1, ratings["film"].max() + 1)

    agent = gb.Agent(features=FEATURES, alpha=alpha, context_noise=0.0, theta_bound=4.0, seed=seed)
    logs = ratings[part == 2]
    learned = agent.learn(tastes.describe(logs), rewards(logs))

    earned = popular = best = kept = 0.0
    for offered in offers(ratings[part == 3], rounds, rng):
        menu, real = tastes.describe(offered), rewards(offered)
        baseline = int(tastes.seen[offered["film"]].argmax())
        decision = agent.decide(menu, baseline=offered["film"].iloc[baseline])
        agent.observe(decision, real[decision.action])
        earned, popular = earned + real[decision.action], popular + real[baseline]
        best, kept = best + real.max(), kept + (decision.kind == "learned")
    return {
        "agent": agent,
        "rows": learned.rows,
        "reward": earned / rounds,
        "popular": popular / rounds,
        "best": best / rounds,
        "learned": kept / rounds,
        "gain": earned / popular - 1,
    }


def main() -> None:
    """Print what the first rounds earn, for a few splits of the ratings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--made-up", action="store_true", help="ratings of nobody, for a try")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5, help="splits of the ratings")
    given = parser.parse_args()
    ratings = made_up_ratings(0) if given.made_up else read_ratings()
    print(f"{len(ratings):,} ratings; {given.rounds:,} rounds, {OFFERED} films in each")
    print("split  logs    most popular  agent  gain     learned plays  best possible")
    gains = []
    for seed in range(given.seeds):
        found = run(ratings, given.rounds, seed)
        gains.append(found["gain"])
        print(
            f"{seed:5}  {found['rows']:,}  {found['popular']:12.3f}  {found['reward']:.3f}  "
            f"{found['gain']:+.1%}  {found['learned']:14.0%}  {found['best']:13.3f}"
        )
    print(f"over the most popular film: {np.mean(gains):+.1%}")


if __name__ == "__main__":
    main()
