"""What the default agent takes for decide + observe, beside a plain LinUCB in NumPy, in turns."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import guardband as gb
from bench.clock import limit, matrix_rate, root_rate
from guardband.agent import warm_up
from guardband.kernels.types import Floats

HEADINGS = ["K", "d", "target", "us p50", "us p99", "NumPy us p50", "NumPy / ours", "wanted"]
HEADINGS += ["of the limit", ""]
LARGEST = 2_000_000  # numbers on a menu
SIZES = [
    (actions, dim)
    for actions in (10, 50, 500, 5_000, 50_000)
    for dim in (9, 50, 128, 384)
    if actions * dim <= LARGEST
]
LARGE = (50, 768)  # as embeddings have it
BATCH_SIZE, BATCH = (50, 9), 256  # where batches are measured, and how many decisions they have
CALLS = ["call", "K", "d", "us p50", "us p99", "wanted us p50", ""]
DECIDE_US = 6_900 / 4  # for `decide` at LARGE: a fourth of what it took before
BATCH_US = 5.0  # for a decision of a batch
TURNS = 12  # that each has; the first does not count
SECONDS = 0.15  # that a turn takes, about

ROWS = 2_000  # of logs, until targets are certified
BY_THE_SET = ("difference", "lead")

Round = Callable[[int], object]


class Menus(NamedTuple):
    """What both are offered, one menu after another."""

    features: Floats  # (C, K, d), the baseline in row 0
    rewards: list[list[float]]  # (C, K)


def menus(actions: int, dim: int, *, certified: bool) -> Menus:
    """Return menus on which the target is soon certified, or never.

    Certified: all features have most in common. Careful: the baseline has nothing in common with
    the others, so that nothing safe teaches about them.
    """
    count = min(200, max(4, 4_000_000 // (actions * dim)))
    rng = np.random.default_rng(actions + dim)
    own = np.abs(rng.normal(size=(count, actions, dim)))
    own[:, :, 0] = 0.0
    own *= (0.1 if certified else 0.9) / np.linalg.norm(own, axis=2, keepdims=True)
    own[:, 0] = 0.0  # the baseline is never the best
    own[:, : None if certified else 1, 0] = 0.9
    theta = np.full(dim, 0.5 * dim**-0.5)
    theta[0] = 0.7
    return Menus(own, (own @ theta).tolist())


def prepared(actions: int, dim: int, given: Menus, *, certified: bool) -> gb.Agent:
    """Return the default agent, once it has come to where it is to be measured."""
    agent = gb.Agent(dim=dim, alpha=0.5)
    one, rows, earned = ours(agent, given), given.features.reshape(-1, dim), np.ravel(given.rewards)
    for start in range(0, 10 * ROWS, ROWS):
        if certified:  # rows of logs bring it there
            which = np.arange(start, start + ROWS) % len(rows)
            agent.learn(rows[which], earned[which])
        if all((one(i).certificate in BY_THE_SET) == certified for i in range(20)):
            return agent
    raise RuntimeError(f"K={actions}, d={dim}: no such decisions")


def ours(agent: gb.Agent, given: Menus) -> Callable[[int], gb.Decision]:
    """Return a round of an agent."""
    features, rewards, count = list(given.features), given.rewards, len(given.features)

    def one(i: int) -> gb.Decision:
        c = i % count
        decision = agent.decide(features[c], 0)
        agent.observe(decision.id, rewards[c][decision.action])
        return decision

    return one


def in_batches(agent: gb.Agent, given: Menus) -> Round:
    """Return BATCH rounds of an agent: it decides, and then learns, in two calls."""
    which = [i % len(given.features) for i in range(BATCH)]
    features, rewards = [given.features[c] for c in which], [given.rewards[c] for c in which]

    def many(_: int) -> None:
        made = agent.decide_many(features, [0] * BATCH)
        agent.observe_many(
            made, [earned[each.action] for earned, each in zip(rewards, made, strict=True)]
        )

    return many


def plain(dim: int, given: Menus) -> Round:
    """Return a round of LinUCB in NumPy: no certificates, nothing checked."""
    inverse, moment, features = np.eye(dim), np.zeros(dim), given.features
    count, rewards = len(features), given.rewards

    def one(i: int) -> None:
        menu = features[i % count]
        widths = np.sqrt(np.einsum("kd,kd->k", menu @ inverse, menu))
        k = int(np.argmax(menu @ (inverse @ moment) + widths))
        x = menu[k]
        scaled = inverse @ x
        inverse[...] -= np.outer(scaled, scaled) / (1.0 + x @ scaled)
        moment[...] += rewards[i % count][k] * x

    return one


def in_turns(rounds: list[Round]) -> list[Floats]:
    """Return the microseconds of every call; each runs for a while, then the next one."""
    found: list[list[float]] = [[] for _ in rounds]
    done = [0] * len(rounds)
    for turn in range(TURNS):
        for which, one in enumerate(rounds):
            end = time.perf_counter() + SECONDS
            while (start := time.perf_counter()) < end:
                one(done[which])
                if turn:
                    found[which].append(time.perf_counter() - start)
                done[which] += 1
    return [1e6 * np.array(times) for times in found]


def measure(notes: Console) -> list[list[str]]:
    """Return a row for every size, with a certified target and while the agent is careful."""
    warm_up()
    rows, flops, roots = [], matrix_rate(), root_rate()
    for actions, dim in [*SIZES, LARGE]:
        for certified in (True, False):
            target = "certified" if certified else "careful"
            with notes.status(f"decide + observe, K={actions}, d={dim}, {target}"):
                given = menus(actions, dim, certified=certified)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", gb.StuckWarning)
                    agent = prepared(actions, dim, given, certified=certified)
                    other, mine = in_turns([plain(dim, given), ours(agent, given)])
            half, its = float(np.median(mine)), float(np.median(other))
            wanted = 1.3 if actions >= 5_000 or (actions, dim) == (50, 9) else 1.0
            said = [f"{half:,.1f}", f"{np.quantile(mine, 0.99):,.1f}", f"{its:,.1f}"]
            said += [f"{its / half:.2f}", f"{wanted:g}"]
            said += [f"{100 * limit(actions, dim, flops, roots) / half:.0f} %"]
            said += ["kept" if its >= wanted * half else "MISSED"]
            rows.append([f"{actions:,}", f"{dim}", target, *said])
            notes.print("  ".join(rows[-1]))
    return rows


def measure_calls(notes: Console) -> list[list[str]]:
    """Return a row of CALLS for `decide` of long features, and for each call of a batch."""
    warm_up()
    rows = []
    for (actions, dim), batch in ((LARGE, 0), (BATCH_SIZE, BATCH)):
        given = menus(actions, dim, certified=True)
        with notes.status(f"calls, K={actions}, d={dim}"):
            agent = prepared(actions, dim, given, certified=True)
            found = calls_in_batches(agent, given) if batch else calls(agent, given)
        for call, times in found.items():
            half, most = float(np.median(times)), BATCH_US if batch else DECIDE_US
            wanted = "-" if call == "observe" else f"{most:,g}"
            kept = "" if call == "observe" else "kept" if half <= most else "MISSED"
            cells = [f"{half:,.2f}", f"{np.quantile(times, 0.99):,.2f}", wanted, kept]
            rows.append([call, f"{actions}", f"{dim}", *cells])
    return rows


def calls(agent: gb.Agent, given: Menus, many: int = 1_000) -> dict[str, Floats]:
    """Return the microseconds of `decide` and of `observe`, each alone."""
    marks = []
    for i in range(many):
        c = i % len(given.features)
        menu, rewards = given.features[c], given.rewards[c]
        before = time.perf_counter()
        decision = agent.decide(menu, 0)
        between = time.perf_counter()
        agent.observe(decision.id, rewards[decision.action])
        marks.append((between - before, time.perf_counter() - between))
    return dict(zip(("decide", "observe"), 1e6 * np.array(marks).T, strict=True))


def calls_in_batches(agent: gb.Agent, given: Menus, many: int = 200) -> dict[str, Floats]:
    """Return the microseconds of a decision in a batch: `decide_many` alone, and both calls."""
    which = [i % len(given.features) for i in range(BATCH)]
    features, rewards = [given.features[c] for c in which], [given.rewards[c] for c in which]
    marks = []
    for _ in range(many):
        before = time.perf_counter()
        made = agent.decide_many(features, [0] * BATCH)
        between = time.perf_counter()
        agent.observe_many(
            made, [earned[each.action] for earned, each in zip(rewards, made, strict=True)]
        )
        marks.append((between - before, time.perf_counter() - before))
    names = (f"decide_many, {BATCH} at once", "decide_many + observe_many")
    return dict(zip(names, 1e6 / BATCH * np.array(marks).T, strict=True))


def main() -> None:
    """Print the tables alone."""
    notes = Console(stderr=True)
    for title, headings, rows in (
        ("The default agent, decide + observe", HEADINGS, measure(notes)),
        ("Calls alone", CALLS, measure_calls(notes)),
    ):
        table = Table(*headings, box=None, title=title)
        for row in rows:
            table.add_row(*row)
        Console(width=160).print(table)


if __name__ == "__main__":
    main()
