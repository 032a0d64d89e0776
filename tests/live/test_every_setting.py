"""Every setting of every live algorithm, by every way of stating it: it is honoured or refused.

The list comes from the algorithms themselves: a new setting without an example here fails.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.server.driver import Served, served
from typer.testing import CliRunner

import guardband as gb
from guardband.agent.setting_rows import ALLOWANCE, CONFIDENCE, TRIGGER
from guardband.cli.app import app
from guardband.kernels.types import Terms
from guardband.live.client.learner import Learner
from guardband.live.link.local import LocalLink
from guardband.live.protocol.space import SpaceSettings
from guardband.live.protocol.space_formats import POLICIES, SETTINGS

# One value of each, other than the default.
EXAMPLES: dict[str, Any] = {
    "alpha": 0.37,
    "anchors": True,
    "baseline_tolerance": 0.05,
    "bias_bound": 0.03,
    "constant": "source",
    "context": "observed",
    "context_noise": 0.13,
    "delta": 0.02,
    "delta_alarm": 0.01,
    "drift": 0.01,
    "feature_bound": 1.9,
    "gap": 0.1,
    "gate": "none",
    "horizon": 5_000,
    "holdback": 0.15,
    "max_loss": 7.0,
    "mix": "task-vector",
    "mode": "policy",
    "noise": 0.21,
    "on_alarm": "warn",
    "on_refuted": "baseline",
    "optimism": 0.4,
    "pooled_set": False,
    "radius": "logdet",
    "realised": ("chance", 0.2),
    "reward_ceiling": 0.3,
    "reward_floor": 0.25,
    "ridge": 0.6,
    "share": False,
    "shared_context": False,
    "theta_bound": 1.7,
    "tolerate": 1,
    "trial_budget": 9.0,
    "window": 40,
}
# What a space calls otherwise, or needs beside it.
IN_A_SPACE = {
    "drift": {"drift": EXAMPLES["drift"], "window": 40},
    "horizon": {"sync": {"horizon": EXAMPLES["horizon"]}},
    "max_loss": {"max_loss": EXAMPLES["max_loss"], "mode": "policy"},
    "shared_context": {"contexts": "per-request"},
}
# What a space refuses, whatever its algorithm, and a part of why.
NOT_IN_A_SPACE = {
    "anchors": r"gb\.Fleet can learn from them",
    "gap": "gate='printed' or gate='none'",
    "mix": "agents play real actions",
    "pooled_set": r"gb\.Fleet has the pooled set",
    "share": "give each its own space",
}
# What agents refuse, too.
NOT_OF_AGENTS = {"gap", "mix"}
# What an algorithm needs beside a setting.
BESIDE: dict[str, Any] = {
    "anchors": {"baseline_tolerance": 0.05},
    "drift": {"window": 40},
    "gap": {"gate": "gap"},
    "max_loss": {"mode": "policy"},
}
# For the paper's own algorithms "source" and "paper" are one; a stream has a share of delta_alarm.
NO_EFFECT = {("disc-ucb", "constant"), ("disc-ucb-unknown", "constant")}
NO_EFFECT |= {("guard-ucb", "delta_alarm")}
TASKS = {"one": [0, 1], "two": [0, 1]}
RUN = CliRunner()
ALARM = Terms._fields.index("alarm")

PAIRS = [(name, each) for name, own in SETTINGS.items() for each in sorted(own)]
POSSIBLE = [(name, each) for name, each in PAIRS if each not in NOT_IN_A_SPACE]
FOREIGN = [
    (name, each)
    for name, own in SETTINGS.items()
    for each in sorted(set(EXAMPLES) - own - set(IN_A_SPACE) - set(NOT_IN_A_SPACE))
]


def stated(algorithm: str, setting: str) -> dict[str, Any]:
    """What `SpaceSettings` is given to make the setting."""
    given = {"name": f"{algorithm}.{setting}", "features": ["a", "b"], "agents": 2}
    given |= {"algorithm": algorithm, "contexts": "shared"}  # the command assumes per-request
    return given | IN_A_SPACE.get(setting, {setting: EXAMPLES[setting]})


def fleet(algorithm: str, setting: str | None = None, *, live: bool = False) -> gb.Fleet:
    """A fleet whose algorithm was made with the setting; `live`: as live agents run it."""
    kind, given = POLICIES[algorithm], {}
    if live and "pooled_set" in kind.settings():  # live agents have none
        given |= {"pooled_set": False}
    if setting is None:
        return gb.Fleet(TASKS, 2, algorithm=kind(**given))
    value = EXAMPLES[setting]
    if setting in kind.settings():
        made = kind(**given | {setting: value}, **BESIDE.get(setting, {}))
        return gb.Fleet(TASKS, 2, algorithm=made)
    return gb.Fleet(TASKS, 2, algorithm=kind(**given), **{setting: value})


def terms_of(group: Any, *, without: list[int]) -> np.ndarray:
    """What the kernels of an agent's group are told, and the bound on features."""
    rows = np.array([group.engine.known[0], group.engine.unknown[0]])
    return np.append(np.delete(rows, without, axis=1), group.feature_bound)


def learner_of(space: SpaceSettings) -> Learner:
    return Learner(space, "one", (0, 1), reward_floor=None, seed=0)


def check_learner(learner: Learner, algorithm: str, setting: str, *, level: bool) -> None:
    """Assert that a live learner computes with what a fleet with the setting computes with."""
    # An agent that joined has a share of delta, and a part of the budget.
    # A fleet forgets by the sums of its monitors, a live agent by those that it uploads.
    without = [*TRIGGER, ALARM, *([] if level else [CONFIDENCE, ALLOWANCE])]
    group = fleet(algorithm, setting, live=True)._group
    plain = fleet(algorithm, live=True)._group
    found = terms_of(learner.group, without=without)
    np.testing.assert_array_equal(found, terms_of(group, without=without))
    if setting == "horizon":
        assert learner.group.engine.known[0][TRIGGER[:2]].tolist() == (
            group.engine.known[0][TRIGGER[:2]].tolist()
        )
    elif level and (algorithm, setting) not in NO_EFFECT:
        assert (found != terms_of(plain, without=without)).any()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("settings")) as running:
        yield running


def test_every_setting_has_an_example() -> None:
    assert set(EXAMPLES) == set().union(*SETTINGS.values())
    for name, kind in POLICIES.items():
        assert {*kind.settings(), *kind.told} <= SETTINGS[name]


@pytest.mark.parametrize(("algorithm", "setting"), PAIRS)
def test_in_the_library(algorithm: str, setting: str) -> None:
    """What the algorithm is made with, and what agents are given, are the same."""
    if setting in NOT_OF_AGENTS:
        with pytest.raises(gb.InputError, match=setting):
            fleet(algorithm, setting)
        return
    changed = terms_of(fleet(algorithm, setting)._group, without=[])
    if (algorithm, setting) not in NO_EFFECT:
        assert (changed != terms_of(fleet(algorithm)._group, without=[])).any()
    if setting in inspect.signature(gb.Fleet).parameters:
        beside = BESIDE.get(setting, {})
        given = gb.Fleet(TASKS, 2, algorithm=algorithm, **{setting: EXAMPLES[setting]}, **beside)
        np.testing.assert_array_equal(terms_of(given._group, without=[]), changed)


@pytest.mark.parametrize(("algorithm", "setting"), POSSIBLE)
def test_in_a_space(algorithm: str, setting: str) -> None:
    space = SpaceSettings(**stated(algorithm, setting))
    check_learner(learner_of(space), algorithm, setting, level=True)
    again = SpaceSettings.from_json(json.loads(json.dumps(space.as_json())))
    assert again == space
    assert SpaceSettings(**json.loads(json.dumps(space.as_json()))) == space


@pytest.mark.parametrize(("algorithm", "setting"), POSSIBLE)
def test_by_the_api_and_the_command_line(algorithm: str, setting: str, server: Served) -> None:
    wanted = SpaceSettings(**stated(algorithm, setting))
    with server.admin() as admin:
        body = json.loads(json.dumps(stated(algorithm, setting)))
        answer = admin.post("/v1/spaces", json=body)
        assert answer.status_code == 201, answer.text
        config = admin.get(f"/v1/spaces/{wanted.name}").json()["config"]
    assert SpaceSettings(**config) == wanted
    name = f"cli.{wanted.name}"
    typed("space", "create", name, *words(stated(algorithm, setting)), "--data", server.data)
    shown = json.loads(typed("space", "show", name, "--data", server.data))
    del shown["config_version"]
    found = SpaceSettings(**shown)
    assert found == wanted.changed(name=name)
    check_learner(learner_of(found), algorithm, setting, level=True)


@pytest.mark.parametrize(("algorithm", "setting"), POSSIBLE)
def test_in_an_agent_that_joined(algorithm: str, setting: str, tmp_path: Path) -> None:
    """The second one knows nothing but what the store has."""
    space = SpaceSettings(**stated(algorithm, setting))
    place = f"local:{tmp_path}"
    gb.connect(place, task="two", settings=space, background=False).close()
    with gb.connect(place, task="one", space=space.name, background=False) as agent:
        assert agent.settings == space
        check_learner(agent._store.state.learner, algorithm, setting, level=False)
    link = LocalLink(tmp_path)
    assert link.space(space.name)[0] == space
    link.close()


@pytest.mark.parametrize("setting", NOT_IN_A_SPACE)
@pytest.mark.parametrize("algorithm", POLICIES)
def test_what_no_space_has(algorithm: str, setting: str, server: Served) -> None:
    check_refused(algorithm, setting, NOT_IN_A_SPACE[setting], server)


@pytest.mark.parametrize(("algorithm", "setting"), FOREIGN)
def test_what_the_algorithm_does_not_have(algorithm: str, setting: str, server: Served) -> None:
    check_refused(algorithm, setting, f"^{algorithm} has no setting", server)
    if setting in inspect.signature(gb.Fleet).parameters:
        with pytest.raises(gb.InputError, match=setting):
            gb.Fleet(TASKS, 2, algorithm=algorithm, **{setting: EXAMPLES[setting]})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"algorithm": "disc-ucb", "gate": "gap"}, "gate must be .*'printed' or 'none', not 'gap'"),
        ({"algorithm": "disc-ucb", "constant": "tight"}, "constant must be .*, not 'tight'"),
        ({"algorithm": "dis-lin-ucb", "context": "observed-after"}, "not 'observed-after'"),
        ({"algorithm": "dis-lin-ucb", "alphas": {"a": 0.2}}, "no setting alpha={'a': 0.2}"),
        ({"shares": "paper"}, "shares='paper' .* guard-ucb .* use shares='registered'"),
        ({"sync": {"trigger": "ratio", "horizon": 9}}, r"sync\.horizon=9 .*'paper' only"),
        ({"sync": {"budget": 2, "horizon": 9}}, r"horizon=9 .*budget=2 out"),
        ({"mode": "policy", "realised": "worst"}, "use mode='strict'"),
        ({"mode": "policy", "trial_budget": 5.0}, "use max_loss=... there"),
        ({"max_loss": 5.0}, "use trial_budget=... there"),
        ({"trial_budget": -1.0}, "trial_budget must be .*not -1"),
    ],
)
def test_what_does_not_fit_together(given: dict[str, Any], words: str) -> None:
    with pytest.raises(gb.InputError, match=words):
        SpaceSettings(features=["a"], agents=2, **given)


def test_the_trigger_is_the_one_whose_setting_is_stated() -> None:
    for given, trigger in (
        ({"horizon": 9}, "paper"),
        ({"budget": 9.0}, "paper"),
        ({"growth": 0.5}, "ratio"),
        ({"interval_s": 5.0}, "interval"),
        ({"min_batch": 5}, "anytime"),
    ):
        space = SpaceSettings(features=["a"], agents=2, sync=given)
        assert space.sync.trigger == trigger


def test_spaces_of_earlier_versions_keep_what_they_did_not_use() -> None:
    """They wrote every setting they had, those of other algorithms and triggers as well."""
    wrote = {
        "name": "home",
        "features": ["a", "b"],
        "agents": 2,
        "alpha": 0.2,
        "alphas": {"one": 0.4},
        "noise": 0.3,
        "spread": 0.1,
        "reward_floor": 0.1,
        "mode": "policy",
        "algorithm": "DisLinUcb",
        "sync": {"trigger": "ratio", "budget": 10.0, "growth": 0.5, "interval_s": 60.0},
    }
    space = SpaceSettings.from_json(wrote)
    assert (space.alpha, space.alphas, space.mode, space.reward_floor) == (None, {}, None, None)
    assert (space.context_noise, space.sync.growth, space.sync.budget) == (0.1, 0.5, None)
    assert space.alpha_of("one") == 1.0
    guard = SpaceSettings.from_json(wrote | {"algorithm": "GuardUcb"})
    assert (guard.alpha_of("one"), guard.alpha_of("two"), guard.mode) == (0.4, 0.2, "policy")


def check_refused(algorithm: str, setting: str, why: str, server: Served) -> None:
    """Assert that all ways refuse the setting, and name the value."""
    given = stated(algorithm, setting)
    with pytest.raises(gb.InputError, match=why) as refused:
        SpaceSettings(**given)
    assert f"{setting}={EXAMPLES[setting]!r}" in str(refused.value)
    with server.admin() as admin:
        answer = admin.post("/v1/spaces", json=json.loads(json.dumps(given)))
        assert answer.status_code == 422
        assert f"{setting}=" in answer.json()["detail"]
    given["name"] = f"cli.{given['name']}"
    command = ["space", "create", given["name"], *words(given), "--data", str(server.data)]
    result = RUN.invoke(app, command)
    assert isinstance(result.exception, gb.InputError)
    assert f"{setting}=" in str(result.exception)


def words(given: dict[str, Any]) -> list[str]:
    """The settings as the command line takes them."""
    found = []
    for name, value in given.items():
        if name == "sync":
            found += [f"sync.{part}={json.dumps(each)}" for part, each in value.items()]
        elif name != "name":
            found.append(f"{name}={json.dumps(value)}")
    return found


def typed(*words: object) -> str:
    result = RUN.invoke(app, [str(word) for word in words])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout  # a server of another test may write to stderr
