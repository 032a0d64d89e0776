"""Worlds on which studies are judged: each has an old rule, its logs, and rounds without end."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

import guardband as gb
from guardband.data import find, read_movielens
from guardband.data.factorise import factorise
from guardband.data.tables import Entries
from guardband.envs.episode import Episode, Rules

CACHE = Path.home() / ".cache" / "guardband-bench"
FOREVER = 10_000_000


class Turn(NamedTuple):
    """A round: the features on offer, (K, d), the baseline's row, what each row would earn."""

    features: np.ndarray
    baseline: int
    reward: Callable[[int], float]
    labels: list[str] | None = None  # None: the rows' numbers

    def label(self, k: int) -> str:
        """Return what action k is called."""
        return str(k) if self.labels is None else self.labels[k]

    def objects(self, names: list[str]) -> list[dict[str, Any]]:
        """Return the menu as a list of objects."""
        rows = enumerate(self.features.tolist())
        return [{"action": self.label(k), **dict(zip(names, row, strict=True))} for k, row in rows]


Turns = Callable[[np.random.Generator], Iterator[Turn]]


@dataclass(frozen=True)
class Case:
    """A world and what is said about it.

    `world` makes its rounds from the world's seed; `settings` are what an agent is told, `rounds`
    is the horizon within which it is followed, `rows` the length of the log, which is what the
    baseline played or, if `uniform`, what a rule played that draws at random. Where features are an
    intercept and a column per action (`one_hot`), the file has labels; else it has menus with
    their numbers. `every_mode` tells whether agents of all modes are followed, or strict ones.
    """

    name: str
    world: Callable[[int], Turns]
    rounds: int
    rows: int
    settings: dict[str, Any] = field(default_factory=dict)
    uniform: bool = False
    one_hot: bool = False
    every_mode: bool = True

    def there(self) -> bool:
        """Tell whether the case's data can be had."""
        if self.world is ratings:
            return find("movielens") is not None
        return self.world is not open_bandit or open_bandit_file() is not None

    def turns(self, world: int, seed: int) -> Iterator[Turn]:
        """Return the rounds of a world under some draws."""
        return made(self.world, world)(np.random.default_rng([world, seed]))

    def log(self, world: int) -> list[tuple[Turn, int, float]]:
        """Return what an old rule played and earned."""
        if self.world is open_bandit:
            turn, rows = next(self.turns(world, 0)), open_bandit_rows()
            places = [turn.labels.index(str(item)) for item in rows.item_id]
            return [(turn, k, float(y)) for k, y in zip(places, rows.click, strict=True)]
        rng, turns = np.random.default_rng([world, 1 << 20]), self.turns(world, 1 << 20)
        played = []
        for turn, _ in zip(turns, range(self.rows), strict=False):
            k = int(rng.integers(len(turn.features))) if self.uniform else turn.baseline
            played.append((turn, k, turn.reward(k)))
        return played

    def file(self, world: int, folder: Path) -> tuple[Path, dict[str, Any]]:
        """Write the log as a user has it; return its path, and what a study is told of columns."""
        if self.world is open_bandit:
            items = sorted(open_bandit_rows().item_id.unique().tolist())
            columns = {"reward": "click", "action": "item_id", "propensity": "propensity_score"}
            columns |= {"features": gb.Features(categories={"item_id": items})}
            return open_bandit_file(), columns
        log, path = self.log(world), folder / "log.parquet"
        frame = pd.DataFrame(
            {
                "action": [turn.label(k) for turn, k, _ in log],
                "reward": [reward for *_, reward in log],
                "baseline": [turn.label(turn.baseline) for turn, *_ in log],
            }
        )
        columns = {"baseline": "baseline"}
        if self.one_hot:
            labels = [log[0][0].label(k) for k in range(len(log[0][0].features))]
            frame["menu"] = json.dumps(labels)
            columns |= {"menu": "menu", "features": gb.Features(categories={"action": labels})}
        else:
            names = [f"x{i}" for i in range(log[0][0].features.shape[1])]
            frame["menu"] = [json.dumps(turn.objects(names)) for turn, *_ in log]
            columns |= {"menu": "menu", "features": names}
        frame.to_parquet(path)
        return path, columns


@cache
def made(world: Callable[[int], Turns], seed: int) -> Turns:
    return world(seed)


def clicked(rng: np.random.Generator, worth: np.ndarray) -> Callable[[int], float]:
    return lambda k: float(rng.random() < worth[k])


def named(name: str) -> Callable[[int], Turns]:
    """Return a named problem: features no longer than 1, rewards cut to [0, 1], no support told."""

    def world(seed: int) -> Turns:
        problem = gb.problem(name, agents=1, seed=seed)
        assumed = problem.assumptions()
        rules, longest = Rules(problem, FOREVER, assumed["alpha"]), assumed["feature_bound"]

        def rounds(rng: np.random.Generator) -> Iterator[Turn]:
            episode = Episode(rules, int(rng.integers(1 << 40)))
            while True:
                seen = episode.observe(0)
                play = episode.play
                reward = lambda k, play=play: min(max(play(0, k)[0], 0.0), 1.0)  # noqa: E731
                yield Turn(seen["features"] / longest, int(seen["baseline"]), reward)
                episode.advance()

        return rounds

    return world


def stated(name: str) -> dict[str, Any]:
    """Return what a named problem lets agents know, for features as `named` scales them."""
    problem = gb.problem(name, agents=1)
    assumed = problem.assumptions()
    bound = max(assumed["feature_bound"], 1.0) * assumed["theta_bound"]
    settings = {"alpha": assumed["alpha"], "theta_bound": bound}
    return settings | {"context_noise": problem.context_noise}


def digits(kind: str) -> Callable[[int], Turns]:
    """Return a world of handwritten digits: ten actions, of which the one drawn earns 1.

    Two weak models were fitted to some images; the baseline trusts the first. Features are an
    intercept and both scores ("scores"), also a column that marks the baseline's action
    ("marked"), or an intercept and eight components of the image in a block per action ("blocks").
    """

    def world(seed: int) -> Turns:
        images, truth = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(truth))
        fit, rest = order[:300], order[300:]
        parts = PCA(8, random_state=0).fit(images[fit]).transform(images)
        first = LogisticRegression(max_iter=1_000).fit(parts[fit, :4], truth[fit])
        second = KNeighborsClassifier(15).fit(parts[fit], truth[fit])
        scores = [first.predict_proba(parts[:, :4]), second.predict_proba(parts)]
        length = np.linalg.norm(parts, axis=1).max()

        def rounds(rng: np.random.Generator) -> Iterator[Turn]:
            while True:
                i = rest[rng.integers(len(rest))]
                baseline = int(scores[0][i].argmax())
                if kind == "blocks":
                    table = np.kron(np.eye(10), np.append(1.0, parts[i] / length)) / np.sqrt(2.0)
                else:
                    columns = [np.ones(10), scores[0][i], scores[1][i]]
                    if kind == "marked":
                        columns.append(np.arange(10) == baseline)
                    table = np.column_stack(columns) / np.sqrt(len(columns))
                yield Turn(table, baseline, lambda k, i=i: float(truth[i] == k))

        return rounds

    return world


def ratings(seed: int) -> Turns:
    """Return a world of real ratings: films that a user rated, ten at a time; the most known first.

    Features come from the other half of the ratings. The baseline is the film with most of them.
    """
    path = find("movielens")
    assert path is not None, "guardband data fetch movielens"
    entries, rng = read_movielens(path), np.random.default_rng(seed)
    half = rng.random(len(entries.values)) < 0.5
    users, films = entries.shape

    def part(keep: np.ndarray) -> Entries:
        return Entries(
            entries.rows[keep], entries.columns[keep], entries.values[keep], (users, films)
        )

    train, test = part(half), part(~half)
    fit = factorise(train, rank=3, ridge=10.0, sweeps=20, seed=seed)
    means = []
    for index, size in ((train.rows, users), (train.columns, films)):
        count = np.bincount(index, minlength=size)
        total = np.bincount(index, train.values, size)
        means.append((total + 5.0 * train.values.mean()) / (count + 5.0))
    known = np.bincount(train.columns, minlength=films)
    user, film = fit.users / fit.users.max(axis=0), fit.items / fit.items.max(axis=0)
    rated = [np.flatnonzero(test.rows == u) for u in range(users)]
    rated = [each for each in rated if each.size >= 10]

    def rounds(rng: np.random.Generator) -> Iterator[Turn]:
        while True:
            some = rng.choice(rated[rng.integers(len(rated))], 10, replace=False)
            u, f = test.rows[some], test.columns[some]
            table = np.column_stack(
                [
                    np.ones(10),
                    (means[0][u] - 1.0) / 4.0,
                    (means[1][f] - 1.0) / 4.0,
                    np.log1p(known[f]) / np.log1p(known.max()),
                    np.clip(((fit.users[u] * fit.items[f]).sum(axis=1) - 1.0) / 4.0, 0.0, 1.0),
                    *(user[u] * film[f]).T,
                ]
            )
            values = (test.values[some] - 1.0) / 4.0
            yield Turn(
                table / np.sqrt(8.0),
                int(known[f].argmax()),
                lambda k, values=values: float(values[k]),
                [str(each) for each in f],
            )

    return rounds


def open_bandit_file() -> Path | None:
    """Return the log of the men's campaign in the wheel of `obp`, from the cache or by pip."""
    path = CACHE / "open-bandit-men.csv"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        words = ["download", "obp==0.4.1", "--no-deps", "--quiet", "--dest", str(CACHE)]
        if subprocess.run([sys.executable, "-m", "pip", *words], check=False).returncode:
            return None
        wheel = next(CACHE.glob("obp-*.whl"))
        with zipfile.ZipFile(wheel) as files:
            path.write_bytes(files.read("obp/dataset/obd/random/men/men.csv"))
    return path


@cache
def open_bandit_rows() -> pd.DataFrame:
    path = open_bandit_file()
    assert path is not None
    return pd.read_csv(io.BytesIO(path.read_bytes()), index_col=0)


def open_bandit(seed: int) -> Turns:
    """Return a world in which showing an item earns what one of its logged rows did.

    Items have an intercept and a column of their own; the baseline is the one shown most.
    """
    rows = open_bandit_rows()
    items = sorted(rows.item_id.unique().tolist())
    clicks = [rows.click[rows.item_id == item].to_numpy(float) for item in items]
    baseline = items.index(int(rows.item_id.mode()[0]))
    table = np.column_stack([np.ones(len(items)), np.eye(len(items))]) / np.sqrt(2.0)

    def rounds(rng: np.random.Generator) -> Iterator[Turn]:
        while True:
            yield Turn(
                table,
                baseline,
                lambda k: float(clicks[k][rng.integers(clicks[k].size)]),
                [str(item) for item in items],
            )

    return rounds


# What is said of features that hold all there is to know: nothing hidden adds to a reward.
KNOWN = {"alpha": 0.1, "context_noise": 0.0}
TWO, THREE = KNOWN | {"theta_bound": 2.0}, KNOWN | {"theta_bound": 3.0}
CASES = (
    Case("MovieLens, raw ratings", ratings, 10_000, 20_000, THREE),
    Case("digits, two scores", digits("scores"), 8_000, 2_000, TWO),
    Case("digits, and which is the baseline's", digits("marked"), 8_000, 2_000, TWO),
    Case(
        "the same, certified without the range of rewards",
        digits("marked"),
        8_000,
        2_000,
        TWO | {"on_refuted": "ellipsoid"},
        every_mode=False,
    ),
    Case("digits, a block per action", digits("blocks"), 8_000, 5_000, THREE, every_mode=False),
    Case("clicks", named("clicks"), 100_000, 20_000, stated("clicks"), every_mode=False),
    Case("categories", named("categories"), 50_000, 20_000, stated("categories"), one_hot=True),
    Case(
        "categories, logged at random",
        named("categories"),
        50_000,
        100_000,
        stated("categories"),
        uniform=True,
        one_hot=True,
        every_mode=False,
    ),
    Case(
        "Open Bandit, men, logged at random",
        open_bandit,
        10_000,
        10_000,
        KNOWN,
        uniform=True,
        one_hot=True,
        every_mode=False,
    ),
    Case("forecast", named("forecast"), 20_000, 5_000, stated("forecast")),
    Case("movielens", named("movielens"), 5_000, 3_000, stated("movielens")),
)
