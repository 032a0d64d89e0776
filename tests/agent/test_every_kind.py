"""What every kind of agent does: alone, in a fleet, or with a coordinator."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import numpy as np
import pytest

import guardband as gb
from guardband.agent.protocol import BanditAgent

MENU = np.array([[0.5, 0.2, 0.1], [0.1, 0.6, 0.2], [0.3, 0.3, 0.3]])
THETA = np.array([0.4, 0.8, 0.3])


def test_it_satisfies_the_protocol(agent: BanditAgent) -> None:
    assert isinstance(agent, BanditAgent)
    for name, wanted in inspect.getmembers(BanditAgent, inspect.isfunction):
        if not name.startswith("_"):
            found = inspect.signature(getattr(type(agent), name)).parameters
            asked = inspect.signature(wanted).parameters
            assert list(asked) == list(found)[: len(asked)], name


def test_it_decides_and_learns(agent: BanditAgent) -> None:
    assert (agent.name, agent.rounds, agent.pending) == ("agent", 0, 0)
    np.testing.assert_array_equal(agent.theta, np.zeros(3))
    for k in range(30):
        decision = agent.decide(MENU, 0, float(MENU[0] @ THETA))
        assert (agent.rounds, agent.pending) == (k + 1, 1)
        agent.observe(decision if k % 2 else decision.id, float(MENU[decision.action] @ THETA))
        assert agent.pending == 0
    assert agent.theta @ MENU[0] == pytest.approx(MENU[0] @ THETA, abs=0.1)


def test_the_first_round_plays_the_baseline_and_says_why(agent: BanditAgent) -> None:
    decision = agent.decide(MENU, 0, 0.4)
    assert (decision.action, decision.kind, decision.propensity) == (0, "baseline", 1.0)
    assert decision.reason


def test_a_batch_is_decided_like_single_requests(agent: BanditAgent) -> None:
    made = agent.decide_many([MENU, MENU[:2]], [0, 1], [0.4, None])
    assert [each.action for each in made] == [0, 1]
    assert len({each.id for each in made}) == agent.pending == 2
    agent.observe_many(made, [0.4, 0.5])
    assert (agent.rounds, agent.pending) == (2, 0)


LABELS = ["low", "middle", "high"]
FORECAST = gb.Discrete([0.5, 1.0], [0.25, 0.75])


def seen_in(action: str, context: Any) -> list[float]:
    """Return the features of an action in a context; affine."""
    row = MENU[LABELS.index(action)]
    return [row[0], float(np.sum(context)) * row[1], row[2]]


def test_it_decides_from_a_distribution_as_from_what_follows_from_it(agent: BanditAgent) -> None:
    phi, weights = gb.feature_support(seen_in, LABELS, FORECAST)
    psi = gb.expected_features(seen_in, LABELS, FORECAST)
    for distribution, known in (
        (FORECAST, {"support": phi, "weights": weights}),
        (gb.Samples([0.5, 1.0, 1.0, 1.0]), {}),
        (gb.Gaussian([0.875], [[0.01]]), {}),
    ):
        one = agent.decide_from(seen_in, LABELS, distribution, 0, 0.3)
        other = agent.decide(psi, 0, 0.3, **known)
        for name in ("mean", "lower", "upper", "floor"):  # what is played depends on the turn, too
            assert getattr(one, name) == getattr(other, name)
        np.testing.assert_array_equal(one.certified, other.certified)
        agent.observe_many([one, other], [0.3, 0.3])
    assert (agent.rounds, agent.pending) == (6, 0)


def test_a_known_support_tells_more_than_draws(agent: BanditAgent) -> None:
    """A reward weighs more where it is known how far the context can have moved it."""
    weights = []
    for distribution in (FORECAST, gb.Samples([0.5, 1.0, 1.0, 1.0])):
        before = np.linalg.norm(agent.theta)
        agent.observe(agent.decide_from(seen_in, LABELS, distribution, 0), 1.0)
        weights.append(np.linalg.norm(agent.theta) - before)
    assert weights[0] > 3 * abs(weights[1])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((seen_in, LABELS, [0.5, 1.0], 0), TypeError, r"distribution is \[0.5, 1.0\]: pass Discr"),
        ((seen_in, [], FORECAST, 0), ValueError, "actions is empty"),
        ((MENU, LABELS, FORECAST, 0), TypeError, "feature_map must be a function"),
        ((seen_in, LABELS, FORECAST, 3), ValueError, "baseline 3 is not one of the 3 actions"),
        ((lambda a, c: [c] * 4, LABELS, FORECAST, 0), ValueError, r"\(K, 3\) .*, not \(3, 4\)"),
        (
            (lambda a, c: [c[0] ** 2] * 3, LABELS, gb.Gaussian([1.0], [[1.0]]), 0),
            ValueError,
            "not affine in the context",
        ),
    ],
)
def test_a_bad_distribution_changes_nothing(
    agent: BanditAgent, given: tuple[Any, ...], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        agent.decide_from(*given)
    assert isinstance(caught.value, gb.InputError)
    assert (agent.rounds, agent.pending) == (0, 0)


def test_a_chance_is_promised_from_a_gaussian() -> None:
    """Of a task's own features, too: the covariance is that of all of them."""
    guard = gb.GuardUCB(0.3, noise=0.1, realised=("chance", 0.1))
    law = gb.Gaussian([0.875], [[0.01]])
    wide = gb.Agent(3, algorithm=guard)
    covariance = gb.difference_covariance(seen_in, LABELS, law, 0, 0.3)
    psi = gb.expected_features(seen_in, LABELS, law)
    one, other = (
        wide.decide_from(seen_in, LABELS, law, 0),
        wide.decide(psi, 0, covariance=covariance),
    )
    assert one[1:12] == other[1:12]
    narrow = gb.Fleet({"tv": [0, 2]}, 3, algorithm=guard)["tv"]
    decision = narrow.decide_from(lambda a, c: np.array(seen_in(a, c))[[0, 2]], LABELS, law, 0)
    assert decision.action == 0
    with pytest.raises(ValueError, match="certifies against the possible contexts"):
        wide.decide_from(seen_in, LABELS, gb.Samples([0.5, 1.0]), 0)


def test_a_decision_can_be_discarded(agent: BanditAgent) -> None:
    first, second = agent.decide(MENU, 0, 0.4), agent.decide(MENU, 0, 0.4)
    agent.discard(first)
    assert agent.pending == 1
    agent.discard(second.id)
    assert agent.pending == 0
    with pytest.raises(gb.UnknownDecisionError):
        agent.observe(first, 0.5)
    np.testing.assert_array_equal(agent.theta, np.zeros(3))


@pytest.mark.parametrize(
    ("features", "baseline", "told"),
    [
        (MENU * np.nan, 0, 0.4),
        (MENU * 10.0, 0, 0.4),
        (MENU[:, :1], 0, 0.4),
        (MENU, 9, 0.4),
        (MENU, 0, 50.0),
        ("text", 0, 0.4),
    ],
)
def test_a_bad_request_changes_nothing(
    agent: BanditAgent, features: Any, baseline: int, told: float
) -> None:
    with pytest.raises(gb.InputError):
        agent.decide(features, baseline, told)
    with pytest.raises(gb.InputError):
        agent.decide_many([MENU, features], [0, baseline], [0.4, told])
    assert (agent.rounds, agent.pending) == (0, 0)


def test_a_bad_reward_changes_nothing(agent: BanditAgent) -> None:
    made = [agent.decide(MENU, 0, 0.4) for _ in range(2)]
    for reward in (float("nan"), 40.0, "much"):
        with pytest.raises(gb.InputError):
            agent.observe(made[0], reward)  # type: ignore[arg-type]
        with pytest.raises(gb.InputError):
            agent.observe_many(made, [0.5, reward])  # type: ignore[list-item]
    for names, rewards in (
        (made, [0.5]),
        ([made[0], made[0]], [0.5, 0.5]),
        ([made[0], "nobody-1"], [0.5, 0.5]),
    ):
        with pytest.raises(gb.InputError):
            agent.observe_many(names, rewards)
    assert agent.pending == 2
    np.testing.assert_array_equal(agent.theta, np.zeros(3))
    agent.observe_many(made, [0.4, 0.4])
    assert agent.pending == 0


@pytest.mark.usefixtures("live_system")
def test_connect_shows_every_parameter() -> None:
    found = inspect.signature(gb.connect).parameters
    defaults = {name: each.default for name, each in list(found.items())[2:]}
    assert list(found)[:2] == ["coordinator", "task"]
    assert defaults == {
        "space": "default",
        "settings": None,
        "uses": None,
        "token": None,
        "state_dir": None,
        "background": True,
        "shadow": False,
        "ephemeral": False,
        "keep_decisions": 100_000,
        "seed": None,
    }
    assert found["task"].kind is found["seed"].kind is inspect.Parameter.KEYWORD_ONLY
    assert get_type_hints(gb.connect)["return"] is gb.LiveAgent
