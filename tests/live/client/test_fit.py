"""Whether a task fits the others, by the sums that live agents are told: evidence, who leaves."""

from __future__ import annotations

import contextlib
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from live.client import test_tolerate as tolerant
from live.client.test_departures import AFTER, BEFORE, TASKS, comes_out_again, statuses, sync, three
from live.client.test_health import work
from live.client.test_modes import coordinator
from live.client.world import Switch, agent, journal_of
from live.operators.journals import change, found
from reference import monitors as reference

import guardband as gb
from guardband.live.client.learner import Learner
from guardband.live.link import Unreachable
from guardband.live.link.local import LocalLink
from guardband.live.operators.monitors_check import changed_monitors
from guardband.live.protocol.sums import Sums, add_sums, empty_sums, sums_of, upper_places

DIM = 2
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def learner(**told: Any) -> Learner:
    space = gb.SpaceSettings(
        name="s", features=["a", "b"], agents=2, contexts="per-request", alpha=0.2, **told
    )
    found = Learner(space, "one", (0, 1), reward_floor=None, seed=0)
    found.monitors.set_threshold(0.5)
    return found


def rows_of(theta: Any, n: int, seed: int) -> Rows:
    rng = np.random.default_rng(seed)
    xs = rng.uniform(0.1, 0.7, (n, DIM))
    ys = np.clip(xs @ np.array(theta) + 0.1 * rng.standard_normal(n), 0.0, 1.0)
    return xs, ys, rng.uniform(4.0, 12.0, n)


def summed(rows: Rows, guesses: np.ndarray, *, by_variance: bool) -> Sums:
    xs, ys, ws = rows
    z = np.column_stack([xs, ys])
    gram = ((z.T * ws) @ z)[upper_places(DIM)]
    surprise = float(ws @ (guesses**2 - 2.0 * ys * guesses))
    return Sums(len(ys), gram, surprise, float(ws.sum()), len(ys) if by_variance else 0)


def evidence(one: Learner, own: Rows, others: list[Sums]) -> float:
    one.monitors.remember(None)
    xs, ys, ws = own
    one.monitors.watch_again(xs, ys, ws, np.full(len(ys), math.nan), [0] * len(ys))
    return one.monitors.evidence_of_misfit(others)


@pytest.mark.parametrize("bias", [0.0, 0.01])
@pytest.mark.parametrize("noise", [None, 0.1])
def test_evidence_is_its_definition(noise: float | None, bias: float) -> None:
    one = learner(noise=noise, context_noise=0.0, bias_bound=bias)
    own, others = rows_of([0.9, 0.0], 40, 1), rows_of([0.2, 0.7], 60, 2)
    guesses = np.clip(others[0] @ np.array([0.5, 0.4]), 0.0, 1.0)
    given = {"bias": bias} | ({} if noise else {"guesses": guesses})
    sums = summed(others, guesses, by_variance=noise is None)
    found = evidence(one, own, [sums])
    assert found == pytest.approx(reference.fit(own, others, **given), abs=1e-8)
    # Where one of the others may lie, the least counts; of nobody nothing is said.
    assert one.monitors.evidence_of_misfit([sums, empty_sums(DIM)]) == -math.inf
    assert one.monitors.evidence_of_misfit([]) == -math.inf
    enough = one.group.engine.terms_now.alarm + math.log(2.0)
    assert one.monitors.misfit([sums], found - enough - 1e-9) == found
    assert one.monitors.misfit([sums], found - enough + 1e-9) is None


@settings(deadline=None, max_examples=40)
@given(
    theta=st.tuples(st.floats(0.05, 0.7), st.floats(0.05, 0.7)),
    features=st.lists(
        st.tuples(st.floats(0.05, 0.7), st.floats(0.05, 0.7)), min_size=1, max_size=3
    ),
    n=st.integers(2, 8),
    known=st.tuples(st.floats(0.0, 0.3), st.floats(0.0, 0.3), st.floats(0.0, 1.0)),
)
def test_tasks_that_fit_are_expected_to(
    theta: tuple[float, float],
    features: list[tuple[float, float]],
    n: int,
    known: tuple[float, float, float],
) -> None:
    """By enumeration: rewards 0 or 1 of two tasks in turn; the second's have weights by variance.

    Its set allows [p - below, p + above], and predicts something within.
    """
    below, above, share = known
    xs = np.array(features)[np.arange(n) % len(features)]
    rates, mean = xs @ np.array(theta), 0.0
    low, high = np.maximum(rates - below, 0.001), np.minimum(rates + above, 0.999)
    middle = np.clip(0.5, low, high)
    weights = np.where(np.arange(n) % 2, 1.0 / (middle * (1.0 - middle)), 4.0)
    guesses = low + share * (high - low)
    for course in itertools.product((0.0, 1.0), repeat=n):
        ys = np.array(course)
        one, two = ((xs[s], ys[s], weights[s]) for s in (slice(0, n, 2), slice(1, n, 2)))
        chance = np.prod(np.where(ys > 0, rates, 1.0 - rates))
        mean += chance * math.exp(reference.fit(one, two, guesses=guesses[1::2]))
    assert mean <= 1.0 + 1e-9


@pytest.mark.parametrize("noise", [None, 0.5])
def test_false_alarms_of_agents_that_pool_are_as_rare_as_promised(noise: float | None) -> None:
    """Two agents, rewards 0 or 1, and the weights of their own sets; both look at each epoch."""
    rng, chance, alarms, runs, nothing = np.random.default_rng(0), 0.25, 0, 200, empty_sums(DIM)
    theta, pair = np.array([0.3, 0.4]), [learner(noise=noise, context_noise=0.0) for _ in range(2)]
    for _ in range(runs):
        handed, raised = [nothing, nothing], False
        for one in pair:
            one.monitors.remember(None)
            one.set_level(0.5, 0, 0)
        for epoch in range(5):
            total, fresh = add_sums(DIM, handed), []
            for one in pair:
                one.load(total, nothing, nothing.as_bytes())
                xs = rng.uniform(0.1, 0.7, (12, DIM))
                ys = (rng.random(12) < xs @ theta).astype(float)
                one.learn_rows(xs, ys, 12 * epoch, 12, 0)
                fresh.append(sums_of(one.state.own))
            handed = [add_sums(DIM, both) for both in zip(handed, fresh, strict=True)]
            for one, others in zip(pair, reversed(handed), strict=True):
                told = others._replace(by_variance=others.n if noise is None else 0)
                raised |= one.monitors.evidence_of_misfit([told]) >= math.log(2.0 / chance)
        alarms += raised
    assert alarms <= chance * runs


def test_audits_make_the_evidence_again(tmp_path: Path) -> None:
    *_, odd = three(tmp_path, AFTER)
    assert [each.kind for each in odd.health.alarms] == ["fit"]
    journal = journal_of(odd)
    assert changed_monitors(journal) == []
    change(odd, "UPDATE alarm SET evidence = evidence + 1e-6")
    assert any("not what its monitors noticed" in each for each in changed_monitors(journal))


def test_own_data_are_looked_at_between_epochs(tmp_path: Path) -> None:
    agents = [agent(tmp_path, task=task, agents=3, alpha=0.2, context_noise=0.0) for task in TASKS]
    *others, odd = agents
    for each, rounds, theta in zip(agents, (200, 200, 10), (BEFORE, BEFORE, AFTER), strict=True):
        work(each, rounds, theta, seed=rounds)
    sync(agents)
    assert odd.epoch
    assert odd.health.ok
    work(odd, 300, AFTER, seed=1)
    (alarm,) = odd.health.alarms
    assert (alarm.kind, alarm.round % 64) == ("fit", 0)
    sync(agents)
    assert all(each.health.ok for each in others)
    comes_out_again(tmp_path, odd)


@pytest.mark.parametrize("first", [0, 2])
def test_tasks_with_much_data_of_their_own_wait_for_the_odd_one_to_leave(
    tmp_path: Path, first: int
) -> None:
    """All contradict the sum when they first pool; all but one would fit without that one."""
    agents = [agent(tmp_path, task=task, agents=3, alpha=0.2, context_noise=0.0) for task in TASKS]
    for place, (each, theta) in enumerate(zip(agents, (BEFORE, BEFORE, AFTER), strict=True)):
        work(each, 400, theta, seed=place)
    sync([*agents[first:], *agents[:first]], 4)
    assert [each.health.ok for each in agents] == [True, True, False]
    assert [each.kind for each in agents[2].health.alarms] == ["fit"]
    assert statuses(tmp_path) == {"movies": "active", "tv": "active", "books": "apart"}
    for place, each in enumerate(agents):
        work(each, 50, AFTER if place == 2 else BEFORE, seed=10 + place)
    sync(agents)
    one, two, _ = agents
    assert one.counted < one.status()["observations"] <= one.counted + two.counted
    for each, theta in zip(agents, (BEFORE, BEFORE, AFTER), strict=True):
        assert np.abs(each.theta - theta).max() < 0.1
        comes_out_again(tmp_path, each)


def asked_of(links: list[Switch], name: str) -> list[dict[str, Any]]:
    """Let links note how they are asked for something; return what is noted."""
    noted: list[dict[str, Any]] = []
    for link in links:
        right = getattr(link.to, name)

        def note(*given: Any, right: Any = right, **more: Any) -> Any:
            noted.append(more)
            return right(*given, **more)

        setattr(link.to, name, note)
    return noted


def contradicting(folder: Path, **given: Any) -> tuple[list[Any], list[Switch]]:
    """Return three agents that wait for a fourth to leave, which lies and does not."""
    links = [Switch(LocalLink(folder / "gb")) for _ in range(4)]
    given = {"agents": 4, "alpha": 0.2, "context_noise": 0.0} | given
    honest = [
        agent(folder, task=task, link=link, **given)
        for task, link in zip(TASKS, links[:3], strict=True)
    ]
    other = agent(folder, task="liar", link=links[3], **given)
    other.sync()
    malicious(other)
    for place, each in enumerate(honest):
        work(each, 200, BEFORE, seed=place)
    sync([*honest, other])
    assert all(each._store.state.stream.doubt == 200 for each in honest)
    return [*honest, other], links


def test_who_waits_asks_seldom_and_goes_on_waiting_after_a_restart(tmp_path: Path) -> None:
    agents, links = contradicting(tmp_path)
    for each in agents[:3]:  # with their own data alone
        assert each.status()["observations"] == each.counted
    asked = asked_of(links, "news")
    for step in range(40):  # a reward at a time
        for place, each in enumerate(agents[:3]):
            work(each, 1, BEFORE, seed=100 * step + place)
        sync(agents, 1)
    assert all(each.health.ok for each in agents)
    assert sum(each["compares"] for each in asked) <= 3 * 3
    agents[0].close()
    agents[0] = agent(tmp_path, task=TASKS[0], agents=4, alpha=0.2, context_noise=0.0)
    assert agents[0]._store.state.stream.doubt == 200
    for place, each in enumerate(agents[:3]):
        work(each, 260, BEFORE, seed=7_000 + place)
    sync(agents)
    assert not all(each.health.ok for each in agents)  # twice as much, and 100 more
    for each in agents[:3]:
        comes_out_again(tmp_path, each)


def test_whoever_fits_again_waits_again(tmp_path: Path) -> None:
    agents, _ = contradicting(tmp_path)
    coordinator(tmp_path).quarantine("default", "liar", "odd", who="ann", now=0.0)
    for place, each in enumerate(agents[:3]):
        work(each, 50, BEFORE, seed=10 + place)
    sync(agents)
    assert all(each.status()["observations"] > each.counted for each in agents[:3])
    assert not any(each._store.state.stream.doubt for each in agents[:3])


def test_a_coordinator_that_forgot_the_epoch_is_asked_once(tmp_path: Path) -> None:
    agents, links = contradicting(tmp_path)
    for place, each in enumerate(agents[:3]):
        work(each, 60, BEFORE, seed=10 + place)
    asked = []

    def forgotten(*given: Any, **more: Any) -> Any:
        asked.append(more["compares"])
        return None if more["compares"] else right(*given, **more)

    right = links[0].to.news
    links[0].to.news = forgotten
    sync(agents, 4)
    assert sum(asked) <= 2
    assert not agents[0]._store.state.compares


def malicious(one: Any) -> None:
    """Let an agent of the space make up rewards of another parameter, and never leave."""
    one._store.state.learner.monitors.kinds = ()
    psi = np.random.default_rng(7).uniform(0.05, 0.55, (3_000, 3))
    one.learn(psi, psi @ AFTER)


@pytest.mark.parametrize("tolerate", [None, 1])
def test_whoever_lies_can_make_no_other_task_leave_where_one_may_lie(
    tmp_path: Path, tolerate: int | None
) -> None:
    given = {"agents": 4, "alpha": 0.2, "context_noise": 0.0, "tolerate": tolerate}
    honest = [agent(tmp_path, task=task, **given) for task in TASKS]
    liar = agent(tmp_path, task="liar", **given)
    liar.sync()
    malicious(liar)

    for step in range(6):
        for place, each in enumerate(honest):
            work(each, 25, BEFORE, seed=10 * step + place)
        sync([*honest, liar])
    assert ("apart" in statuses(tmp_path).values()) == (not tolerate)
    assert all(each.health.ok for each in honest) == bool(tolerate)
    for each in honest:
        comes_out_again(tmp_path, each)


def test_whoever_lies_harms_nobody_while_all_watch(tmp_path: Path) -> None:
    honest, liar = tolerant.space(tmp_path, 1, delta_alarm=1e-3)
    liar.sync()
    malicious(liar)
    made, below = [], 0
    for step in range(6):
        sync([liar, *honest], 2)
        more, low = tolerant.play(honest, 12, step)
        made, below = made + more, below + low
    assert below == 0
    assert sum(each.kind == "learned" for each in made) > 20
    for each in honest:
        assert each.health == gb.Health(True, (), ("assumptions", "certificates", "fit"))
        assert each.status()["observations"] > 3_000  # the liar's are among them
        assert found(tmp_path / "gb", made[-1].id).result == "same"


def test_a_task_with_a_world_of_its_own_leaves_where_one_may_lie(tmp_path: Path) -> None:
    agents = three(tmp_path, AFTER, tolerate=1)
    assert [each.kind for each in agents[2].health.alarms] == ["fit"]
    sync(agents)
    assert statuses(tmp_path) == {"movies": "active", "tv": "active", "books": "apart"}
    for step in range(3):
        for place, each in enumerate(agents):
            work(each, 25, AFTER if place == 2 else BEFORE, seed=500 + 10 * step + place)
        sync(agents)
    for each in agents:
        comes_out_again(tmp_path, each)


def test_one_task_alone_makes_no_other_start_anew_where_it_may_lie(tmp_path: Path) -> None:
    given = {"agents": 2, "alpha": 0.2, "context_noise": 0.0, "tolerate": 1}
    one, two = (agent(tmp_path, task=task, **given) for task in TASKS[:2])
    assert one.health.watched == ("assumptions", "certificates", "fit")
    for step in range(6):
        for place, each in enumerate((one, two)):
            work(each, 50, BEFORE, seed=10 * step + place)
        sync([one, two])
    work(one, 400, AFTER, seed=1)
    assert [each.kind for each in one.health.alarms] == ["assumptions"]
    counted = two.counted
    sync([one, two])
    assert statuses(tmp_path) == {"movies": "anew", "tv": "active"}
    assert (one.counted, two.counted) == (0, counted)
    work(two, 400, AFTER, seed=3)
    assert not two.health.ok
    sync([one, two])
    assert set(statuses(tmp_path).values()) == {"active"}
    for each in (one, two):
        comes_out_again(tmp_path, each)


class Deaf:
    """A coordinator that does not hear of new streams."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def register(self, *args: Any, **more: Any) -> Any:
        raise Unreachable("not now")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.to, name)


def test_of_two_that_contradict_each_other_one_leaves(tmp_path: Path) -> None:
    links = [Switch(LocalLink(tmp_path / "gb")) for _ in TASKS]
    agents = [
        agent(tmp_path, task=task, link=link, agents=3, alpha=0.2, context_noise=0.0)
        for task, link in zip(TASKS, links, strict=True)
    ]
    sync(agents, 1)
    for each, theta in zip(agents[:2], (BEFORE, AFTER), strict=True):
        work(each, 300, theta)
    for link in links:
        link.to = Deaf(link.to)
    for each in agents * 3:
        with contextlib.suppress(Unreachable):
            each.sync()
    assert [each.health.ok for each in agents] == [False, False, True]
    for link in links:
        link.to = link.to.to
    sync(agents)
    assert sorted(statuses(tmp_path).values()) == ["active", "active", "apart"]
    assert [each.status()["apart"] for each in agents] == [True, False, False]
    for each in agents[:2]:
        comes_out_again(tmp_path, each)
