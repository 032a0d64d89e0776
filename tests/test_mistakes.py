"""A hundred mistakes: each gets a sentence that names the value or the remedy, and changes nothing.

What is wrong in a table of settings or of features has tests of its own; here every public function
is called once more as somebody might who has read half a page.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import guardband as gb

MENU = [[0.5, 0.2, 0.1], [0.1, 0.6, 0.2]]
FEATURES = gb.Features(
    numbers={"minutes": (5, 240, "log")}, categories={"format": ["film", "series"]}
)
ROWS = pd.DataFrame({"minutes": [95, 45], "format": ["film", "series"]}, index=["Heat", "Dark"])
LOGS = pd.DataFrame({"clicked": [0, 1] * 20, "item": ["a", "b"] * 20})
NAN = float("nan")

Call = Callable[[Any], Any]


def space(**more: Any) -> gb.SpaceSettings:
    given: dict[str, Any] = {
        "name": "s",
        "features": ("a", "b", "c"),
        "agents": 2,
        "contexts": "per-request",
    }
    return gb.SpaceSettings(**given | more)


def never(action: Any, context: Any) -> list[float]:
    return [0.1, 0.1, 0.1]


# `w` has an agent, a named one, a fleet, a live agent, results, and in `open` a decision of the
# agent that waits for its reward.
MISTAKES: list[tuple[str, Call, str]] = [
    # ---- making agents
    ("Agent", lambda _: gb.Agent(), "such as dim=3, or which ones, features=gb.Features(...)"),
    ("Agent", lambda _: gb.Agent(algorithm="guard-ucb"), "neither was given"),
    ("Agent", lambda _: gb.Agent(3, features=FEATURES), "both dim=3 and features were given"),
    ("Agent", lambda _: gb.Agent(FEATURES), "dim must be a whole number, not <Features"),
    ("Agent", lambda _: gb.Agent("3"), "dim must be a whole number, not '3'"),
    ("Agent", lambda _: gb.Agent(2.5), "not 2.5"),
    ("Agent", lambda _: gb.Agent(True), "dim must be a whole number, not True"),
    ("Agent", lambda _: gb.Agent(3, alpha=[0.1, 0.2]), "give one number, or one per task"),
    ("Agent", lambda _: gb.Agent(0), "dim must be at least 1, not 0"),
    ("Agent", lambda _: gb.Agent(10**9), "at most"),
    ("Agent", lambda _: gb.Agent(features=["minutes"]), "must be a gb.Features, not ['minutes']"),
    ("Agent", lambda _: gb.Agent(3, algorithm="guard-ucv"), "Did you mean 'guard-ucb'?"),
    ("Agent", lambda _: gb.Agent(3, algorithm=gb.GuardUCB), "an object such as gb.GuardUCB()"),
    ("Agent", lambda _: gb.Agent(3, algorithm=7), "or a name, not 7"),
    ("Agent", lambda _: gb.Agent(3, alpha=0), "(0, 1], not 0.0"),
    ("Agent", lambda _: gb.Agent(3, alpha=10), "0.1 keeps at least 90 %"),
    ("Agent", lambda _: gb.Agent(3, alpha="10%"), "alpha must be a number, not '10%'"),
    ("Agent", lambda _: gb.Agent(3, mode="polcy"), "Did you mean 'policy'?"),
    ("Agent", lambda _: gb.Agent(3, noise=-1), "noise must be a positive number, not -1"),
    ("Agent", lambda _: gb.Agent(3, theta_bound=NAN), "theta_bound must be a positive number"),
    ("Agent", lambda _: gb.Agent(3, delta=2), "strictly between 0 and 1, not 2"),
    ("Agent", lambda _: gb.Agent(3, seed=-1), "seed must be at least 0, not -1"),
    ("Agent", lambda _: gb.Agent(3, horizon=9), "does not use horizon=9: leave it out"),
    ("Agent", lambda _: gb.Agent(3, holdback=1.5), "such as 0.05"),
    ("Agent", lambda _: gb.Agent(3, max_loss=5), "use trial_budget=..."),
    ("Agent", lambda _: gb.Agent(3, window=0), "window must be at least 2, not 0"),
    ("Agent", lambda _: gb.Agent(3, budget=100), "gb.Budget(total, horizon), not 100"),
    ("Agent", lambda _: gb.Agent(3, on_alarm="stop"), "'restart', 'baseline', 'warn', not 'stop'"),
    ("Fleet", lambda _: gb.Fleet({}, 3), "give at least one, such as {'movies': [0, 1, 2]}"),
    ("Fleet", lambda _: gb.Fleet(["a", "b"], 3), "not ['a', 'b']"),
    ("Fleet", lambda _: gb.Fleet({"a": [5]}, 3), "numbered 0 to 2"),
    ("Fleet", lambda _: gb.Fleet({"a": []}, 3), "needs at least one feature"),
    ("Fleet", lambda w: w.fleet["c"], "no task 'c'; there are a, b"),
    ("Fleet", lambda w: w.fleet.readmit("c"), "no task 'c'; there are a, b"),
    ("Fleet", lambda w: w.fleet.decide(MENU, 0), "say fleet['a'].decide"),
    ("Fleet", lambda w: w.fleet.decides, "a fleet has no 'decides'"),
    ("GuardUCB", lambda _: gb.GuardUCB(radius="bst"), "Did you mean 'best'?"),
    ("DiscUCB", lambda _: gb.DiscUCB(gate="printd"), "Did you mean 'printed'?"),
    ("DiscUCBUnknown", lambda _: gb.DiscUCBUnknown(alpha=0), "alpha must lie in (0, 1], not 0.0"),
    (
        "DisLinUCB",
        lambda _: gb.DisLinUCB(noise=-1),
        "noise must be zero or a positive number, not -1",
    ),
    ("Budget", lambda _: gb.Budget(-1, horizon=3), "zero or a positive number, not -1"),
    ("Budget", lambda _: gb.Budget(3, horizon=0), "horizon must be at least 1, not 0"),
    # ---- deciding
    ("decide", lambda w: w.agent.decide(MENU, 5), "baseline 5 is not one of the 2 actions"),
    ("decide", lambda w: w.agent.decide(MENU, -1), "baseline -1 is not one of the 2 actions"),
    ("decide", lambda w: w.agent.decide(MENU, "a"), "the row of an action, not 'a'"),
    ("decide", lambda w: w.agent.decide([], 0), "one row per action"),
    ("decide", lambda w: w.agent.decide([[1, 2]], 0), "shape (K, 3) with K > 0, not (1, 2)"),
    ("decide", lambda w: w.agent.decide([[0.1, 0.2], [0.1]], 0), "these have different lengths"),
    ("decide", lambda w: w.agent.decide(3, 0), "not (): one row per action"),
    ("decide", lambda w: w.agent.decide([[3, 0, 0]], 0), "scale the features"),
    ("decide", lambda w: w.agent.decide([[NAN, 0, 0]], 0), "features of action 0 are not finite"),
    ("decide", lambda w: w.agent.decide(None, 0), "a table of numbers, one row per action, not No"),
    ("decide", lambda w: w.agent.decide([["a", "b", "c"]], 0), "per action: 'a' is no number."),
    ("decide", lambda w: w.agent.decide(MENU, 0, labels={"a", "b"}), "labels must be a list or a"),
    ("decide", lambda w: w.agent.decide({"a": [0.1]}, 0), "make it with features=gb.Features(...)"),
    ("decide", lambda w: w.agent.decide(ROWS, "Heat"), "column 'format' has no numbers"),
    ("decide", lambda w: w.agent.decide(MENU, 0, labels=["a"]), "1 labels for 2 actions"),
    ("decide", lambda w: w.agent.decide(MENU, 0, value=[1]), "value must have shape (2), not (1,)"),
    ("decide", lambda w: w.agent.decide(MENU, 0, cost=[1, 2]), "budget=gb.Budget(total, horizon)"),
    ("decide", lambda w: w.agent.decide(MENU, 0, baseline_reward=2), "not 2: it is an expected"),
    ("decide", lambda w: w.named.decide(ROWS, 0), "There are 'Heat', 'Dark'"),
    ("decide", lambda w: w.named.decide(ROWS, "Ran"), "There are 'Heat', 'Dark'"),
    ("decide", lambda w: w.named.decide(ROWS.iloc[:, 1:], "Heat"), "no column 'minutes'"),
    (
        "decide",
        lambda w: w.named.decide(ROWS.assign(minutes="long"), "Heat"),
        "column 'minutes', row 'Heat': 'long' is not a number",
    ),
    ("decide", lambda w: w.named.decide([{"minutes": 3}], 0), "row 0 has no 'format': say None"),
    ("decide", lambda w: w.named.decide([*ROWS.to_dict("records")], "Heat"), "not 'Heat'"),
    ("decide", lambda w: w.named.decide(ROWS.to_dict(), "Heat"), "as to_dict('index') makes it"),
    ("decide", lambda w: w.named.decide(ROWS.to_dict("index"), "Ran"), "are 'Heat', 'Dark'"),
    ("decide", lambda w: w.named.decide(pd.concat([ROWS, ROWS]), "Heat"), "reset_index(drop=True)"),
    ("decide", lambda w: w.live.decide(MENU, 7), "baseline 7 is not one of the 2 actions"),
    ("decide_many", lambda w: w.agent.decide_many([MENU], [0, 1]), "one baseline for each table"),
    ("decide_many", lambda w: w.agent.decide_many([MENU], 0), "baselines must be a list"),
    (
        "decide_many",
        lambda w: w.agent.decide_many([MENU], {0}),
        "a list or a tuple, not {0}: a set",
    ),
    ("decide_many", lambda w: w.agent.decide_many(7, [0]), "features must be a list"),
    ("decide_many", lambda w: w.agent.decide_many([MENU, MENU], [0, 7]), "baseline 7 is not one"),
    (
        "decide_from",
        lambda w: w.agent.decide_from("f", ["a"], gb.Samples([[1.0]]), 0),
        "feature_map must be a function of an action and a context, not 'f'",
    ),
    # ---- rewards
    ("observe", lambda w: w.agent.observe("x", 0.5), "give the id of one of its own"),
    ("observe", lambda w: w.agent.observe(None, 0.5), "None is no decision of task 'agent'"),
    ("observe", lambda w: w.agent.observe(w.open, 3), "(reward - least) / (greatest - least)"),
    ("observe", lambda w: w.agent.observe(w.open, -0.5), "reward -0.5 is not in [0, 1]"),
    ("observe", lambda w: w.agent.observe(w.open, NAN), "reward must be finite, not nan"),
    ("observe", lambda w: w.agent.observe(w.open, "yes"), "a number, not 'yes'"),
    ("observe", lambda w: w.agent.observe(w.open, None), "a number, not None"),
    ("observe", lambda w: w.live.observe("zz", 0.5), "'zz' is no decision of task 'a'"),
    ("observe_many", lambda w: w.agent.observe_many([w.open], 0.1), "rewards must be a list"),
    ("observe_many", lambda w: w.agent.observe_many(7, [0.1]), "decisions must be a list"),
    ("observe_many", lambda w: w.agent.observe_many([w.open], [0, 1]), "1 decisions and 2 rewards"),
    ("observe_many", lambda w: w.agent.observe_many([w.open] * 2, [0, 1]), "in the batch twice"),
    ("observe_many", lambda w: w.live.observe_many([], 0.1), "rewards must be a list"),
    ("observe_many", lambda w: w.live.observe_many({w.open.id}, [1]), "not {'agent-2'}: a set has"),
    ("discard", lambda w: w.agent.discard(77), "77 is no decision of task 'agent'"),
    ("override", lambda w: w.agent.override(w.open, action=9), "action 9 is not one of the 2"),
    ("override", lambda w: w.agent.override(w.open, action="b"), "a whole number, not 'b'"),
    (
        "learn",
        lambda w: w.agent.learn(None, None),
        "a table of numbers, one row per reward, not No",
    ),
    ("learn", lambda w: w.agent.learn(MENU, [0.5]), "2 rows of features and 1 rewards"),
    ("learn", lambda w: w.agent.learn(MENU, [0.5, 7]), "row 1: reward 7 is not in [0, 1]"),
    ("learn", lambda w: w.agent.learn(MENU, ["a", "b"]), "that of row 0 is 'a'"),
    ("learn", lambda w: w.agent.learn([], []), "not (0,)"),
    ("learn", lambda w: w.agent.learn(ROWS, [1, 0]), "column 'format' has no numbers"),
    ("learn_blocks", lambda w: w.live.learn_blocks(7), "blocks must be a function"),
    ("uplift", lambda w: w.agent.uplift(), "state holdback=..., such as 0.05"),
    # ---- files
    ("save", lambda w: w.agent.save("folder"), "'folder': it cannot be saved (Is a directory)"),
    ("save", lambda w: w.fleet.save("text/fleet.npz"), "'text/fleet.npz': it cannot be saved"),
    ("save", lambda w: w.agent.save(""), "names no file: give one, such as 'agent.npz'"),
    ("save", lambda w: w.results.save("text"), "'text': it cannot be a folder for results"),
    ("save", lambda w: w.agent.save(None), "path must be a path, a text, not None"),
    ("save", lambda w: w.results.save(None), "folder must be a path, a text, not None"),
    ("load", lambda _: gb.Agent.load(1), "path must be a path, a text, not 1"),
    ("from_file", lambda _: gb.Agent.from_file(1), "path must be a path, a text, not 1"),
    ("from_file", lambda _: gb.problems.from_file(1), "path must be a path, a text, not 1"),
    ("load", lambda _: gb.Agent.load("missing.npz"), "there is no missing.npz: check the path"),
    ("load", lambda _: gb.Fleet.load("missing.npz"), "there is no missing.npz: check the path"),
    ("load", lambda _: gb.Agent.load("folder"), "folder is a folder: give the file that save"),
    ("load", lambda _: gb.Agent.load("text"), "text is not a saved agent or fleet"),
    ("from_file", lambda _: gb.Agent.from_file("missing.toml"), "`guardband study` writes an"),
    ("from_file", lambda _: gb.Agent.from_file("folder"), "'folder': it cannot be read"),
    ("from_file", lambda _: gb.Agent.from_file("text"), "text is not valid TOML"),
    ("from_file", lambda _: gb.problems.from_file("missing.csv"), "there is no file missing.csv"),
    ("from_file", lambda _: gb.problems.from_file("text"), "neither .npz nor .csv"),
    # ---- features and contexts
    ("Features", lambda _: gb.Features(numbers=["m"]), "a dict by column, not ['m']"),
    ("Features", lambda _: gb.Features(numbers={"m": 5}), "give (low, high)"),
    ("Features", lambda _: gb.Features(numbers={"m": (5, 5)}), "two rising numbers"),
    ("Features", lambda _: gb.Features(numbers={"m": (0, 5, "log")}), "limits above 0, not 0.0"),
    ("Features", lambda _: gb.Features(categories={"f": "film"}), "give a list of values"),
    ("Features", lambda _: gb.Features(categories={"f": {"x"}}), "not {'x'}: a set has another"),
    ("Features", lambda _: gb.Features(numbers={"m": (0, NAN)}), "must be finite, below 1e100"),
    ("Features", lambda _: gb.Features(crosses=[("a", "b")]), "no column; there are none"),
    ("Features", lambda _: gb.Features.from_json("{"), "is no JSON"),
    ("Features", lambda _: FEATURES.table(7), "a DataFrame, a list of dicts"),
    ("Hashed", lambda _: gb.Hashed(0), "size must be at least 1, not 0"),
    ("Discrete", lambda _: gb.Discrete([[1, 2]], [1, 2]), "give one per context"),
    ("Gaussian", lambda _: gb.Gaussian([0], [[-1]]), "raise its diagonal"),
    ("Samples", lambda _: gb.Samples([]), "give at least one"),
    ("expected_features", lambda _: gb.expected_features(never, ["a"], "x"), "pass Discrete"),
    (
        "feature_support",
        lambda _: gb.feature_support(never, ["a"], gb.Gaussian([0.0], [[1.0]])),
        "draw Samples",
    ),
    (
        "difference_covariance",
        lambda _: gb.difference_covariance(never, ["a"], "x", 0, 0.1),  # type: ignore[arg-type]
        "pass Discrete",
    ),
    # ---- simulations and studies
    ("simulate", lambda _: gb.simulate("forcast", ["baseline"]), "Did you mean 'forecast'?"),
    ("simulate", lambda _: gb.simulate("toy", ["guard-ucv"]), "Did you mean 'guard-ucb'?"),
    ("simulate", lambda _: gb.simulate("toy", []), "give at least one"),
    ("simulate", lambda _: gb.simulate("toy", [7]), "methods choose and update"),
    ("simulate", lambda _: gb.simulate(7, ["baseline"]), "gb.problem(name) or gb.Tabular"),
    ("simulate", lambda _: gb.simulate("toy", ["baseline"], rounds=1.5), "not 1.5"),
    ("simulate", lambda _: gb.simulate("toy", ["baseline"], rounds="9"), "not '9'"),
    (
        "simulate",
        lambda _: gb.simulate("toy", ["baseline"], rounds=9, trials=0),
        "at least 1, not 0",
    ),
    ("simulate", lambda _: gb.simulate("toy", ["baseline"], rounds=9, alpha=2), "(0, 1], not 2.0"),
    ("simulate", lambda _: gb.simulate("toy", "baseline", rounds=9, replay=3), "be a gb.Replay"),
    ("simulate", lambda _: gb.simulate("toy", "baseline", rounds=9, cache=3), "cache must be a"),
    ("problem", lambda _: gb.problem("forecast", agnts=3), "Did you mean 'agents'?"),
    ("Tabular", lambda _: gb.Tabular(1, 2, 3), "phi must have shape"),
    (
        "Replay",
        lambda _: gb.simulate("toy", ["baseline"], rounds=5, replay=gb.Replay(*[[0]] * 4)),
        "replay.contexts must be 5 whole numbers",
    ),
    ("Results", lambda w: w.results["x"], "no series 'x'; there are 'baseline'"),
    ("Results", lambda w: w.results.plot("regrt"), "Did you mean 'regret'?"),
    ("Results", lambda w: w.results.trace, "call simulate(..., trace=True)"),
    ("study", lambda _: gb.study("missing.csv", reward="r"), "there is no file missing.csv"),
    ("study", lambda _: gb.study("folder", reward="r"), "give one file"),
    ("study", lambda _: gb.study(7, reward="r"), "the path of a CSV or Parquet file"),
    ("study", lambda _: gb.study(LOGS, reward="click", action="item"), "Did you mean 'clicked'?"),
    (
        "study",
        lambda _: gb.study(LOGS, reward="clicked", action="item", columns={"x"}),
        "columns must be a list or a tuple, not {'x'}",
    ),
    ("study", lambda _: gb.study(LOGS[:9], reward="clicked", action="item"), "20 rows at least"),
    # ---- live
    ("SpaceSettings", lambda _: gb.SpaceSettings(name="s"), "features must be given"),
    ("SpaceSettings", lambda _: space(alhpa=0.1), "Did you mean 'alpha'?"),
    ("SpaceSettings", lambda _: space(features=3), "features must be a list, not 3"),
    ("SpaceSettings", lambda _: space(features={"a"}), "must be a list, not {'a'}: a set has no"),
    ("SpaceSettings", lambda _: space(features=[]), "one entry at least, not []"),
    ("SpaceSettings", lambda _: space(features=[1]), "features.0 must be a text, not 1."),
    ("SpaceSettings", lambda _: space(name=""), "name must have one character at least, not ''"),
    ("SpaceSettings", lambda _: space(name="x" * 65), "name must have at most 64 characters"),
    ("SpaceSettings", lambda _: space(agents="2"), "agents must be a whole number, not '2'"),
    ("SpaceSettings", lambda _: space(agents=2.5), "agents must be a whole number, not 2.5"),
    ("SpaceSettings", lambda _: space(alpha="10%"), "alpha must be a number, not '10%'"),
    ("SpaceSettings", lambda _: space(alphas=0.1), "alphas must be a dict, not 0.1"),
    ("SpaceSettings", lambda _: space(rewards="prompt"), "must be a dict of settings, not 'prom"),
    ("SpaceSettings", lambda _: space(name="a b"), "letters, digits and ._- only, not 'a b'"),
    ("SpaceSettings", lambda _: space(agents=0), "agents must be greater than or equal to 1"),
    ("connect", lambda _: gb.connect("ftp://x", task="a"), "'local:FOLDER' nor 'http(s)"),
    ("connect", lambda _: gb.connect(7, task="a"), "such as 'local:./gb', not 7"),
    ("connect", lambda _: gb.connect("http://", task="a"), "'http://' is no address of a"),
    (
        "connect",
        lambda _: gb.connect("http://x:99999", task="a"),
        "99999' is no address of a coord",
    ),
    ("connect", lambda _: gb.connect("http://x", task="a", token=5), "token must be a text, not"),  # type: ignore[arg-type]
    ("connect", lambda _: gb.connect("local:./new"), "name the task of this agent, such as task="),
    ("connect", lambda _: gb.connect("local:./new", task=None), "not None"),  # type: ignore[arg-type]
    ("connect", lambda _: gb.connect("local:./new", task="a/.."), "not 'a/..'"),
    ("connect", lambda _: gb.connect("local:./gb", task="a"), "with settings=gb.SpaceSettings"),
    ("connect", lambda _: gb.connect("local:./new", task="a"), "with settings=gb.SpaceSettings"),
    (
        "connect",
        lambda _: gb.connect("local:./new", task="a", settings=space(), uses=["d"]),
        "no feature 'd' in this space",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./new", task="a", settings=space(), uses=7),  # type: ignore[arg-type]
        "uses must be a list of features, such as [0, 1], not 7",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./new", task="a", settings=space(), state_dir="text"),
        "'text': no journal can be kept there; choose another folder",
    ),
    ("connect", lambda _: gb.connect("local:./gb", task="a", space=7), "space must be a text"),  # type: ignore[arg-type]
    (
        "connect",
        lambda _: gb.connect("local:./gb", task="a", space="s", state_dir=7),  # type: ignore[arg-type]
        "state_dir must be the path of a folder, not 7",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./gb", task="third", space="s", background=False),
        "declared for 2 tasks, and all are taken",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./new", task="a", settings={"agents": 2}),  # type: ignore[arg-type]
        "settings must be a gb.SpaceSettings, not {'agents': 2}",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./new", task="a", settings=space(), space="other"),
        "space='other' was given, but settings of 's'",
    ),
    (
        "connect",
        lambda _: gb.connect("http://127.0.0.1:1", space="s", task="a", background=False),
        "http://127.0.0.1:1 does not answer: Connection refused.",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./text", task="a", settings=space()),
        "no journal can be kept there; choose another folder (Not a directory)",
    ),
    (
        "connect",
        lambda _: gb.connect("local:./gb", task="b", settings=space(), state_dir="text"),
        "'text': no journal can be kept there; choose another folder",
    ),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """One world for all mistakes: none of them changes it."""
    with contextlib.chdir(tmp_path_factory.mktemp("mistakes")):
        yield from _world()


def _world() -> Iterator[SimpleNamespace]:
    Path("folder").mkdir()
    Path("text").write_text("a = ")
    agent = gb.Agent(3)
    agent.observe(agent.decide(MENU, 0), 0.5)
    made = SimpleNamespace(agent=agent, open=agent.decide(MENU, 0))
    made.named, made.fleet = gb.Agent(features=FEATURES), gb.Fleet({"a": None, "b": [0, 1]}, 3)
    made.results = gb.simulate("toy", ["baseline"], rounds=5, progress=False)
    with gb.connect("local:./gb", task="a", settings=space(), background=False) as made.live:
        made.live.observe(made.live.decide(MENU, 0), 0.5)
        with gb.connect("local:./gb", task="b", space="s", background=False):
            yield made


def state(world: SimpleNamespace) -> list[Any]:
    """Return all that a call could have changed."""
    agents = (world.agent, world.named, *world.fleet.values())
    told = [(each.rounds, each.pending, each.theta.tolist()) for each in agents]
    # SQLite makes and removes files of its own beside its databases.
    files = sorted(str(path) for path in Path().rglob("*") if "-" not in path.name)
    return [told, world.live.counted, world.live.pending, files]


@pytest.mark.parametrize(
    ("call", "told"),
    [(call, told) for _, call, told in MISTAKES],
    ids=[f"{name}-{i}" for i, (name, *_) in enumerate(MISTAKES)],
)
def test_a_mistake_gets_a_sentence_and_changes_nothing(
    world: SimpleNamespace, call: Call, told: str
) -> None:
    before = state(world)
    with pytest.raises((gb.GuardbandError, TypeError, AttributeError, OSError)) as error:
        call(world)
    assert told in str(error.value)
    assert "[Errno" not in str(error.value)
    assert state(world) == before


def test_there_are_more_than_a_hundred_in_every_corner() -> None:
    assert len(MISTAKES) > 100
    called = {name for name, *_ in MISTAKES}
    assert {name for name in gb.__all__ if _is_called(name)} <= called


# What calls return: nobody makes these by hand. Methods of LiveAgent stand under their own names.
RETURNED = {"Decision", "Health", "Learned", "LiveAgent", "Outlook", "Study", "Uplift"}


def _is_called(name: str) -> bool:
    """Tell whether a public name is something that users call; errors are raised, not called."""
    value = getattr(gb, name)
    raised = isinstance(value, type) and issubclass(value, BaseException)
    return callable(value) and not raised and name not in RETURNED
