"""Agents before their kernels are compiled: the same decisions, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from kernels.children import child

import guardband as gb
from guardband.agent import Weighed
from guardband.agent.warmup import rehearse
from guardband.kernels._jit import Kernel
from guardband.kernels.start import plain
from guardband.kernels.start.background import collected

THETA = np.array([0.5, 0.3, 0.0, 0.4])
NEAR = 2.0**-52
ONE, TWO, FOUR = {"a": None}, {"a": [0, 1, 3], "b": None}, dict.fromkeys("abcd")
STATED = {"noise": 0.1, "context_noise": 0.0}

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # the tasks, what is given to `decide`, and the agents' settings
    "default": (TWO, {}, {}),
    "policy": (TWO, {}, {"mode": "policy", "max_loss": 3.0, **STATED}),
    "trials": (ONE, {}, {"trial_budget": 2.0, **STATED}),
    "contexts": (ONE, {"support": True}, {"context_noise": 0.1}),
    "worst context": (ONE, {"support": True}, {"algorithm": gb.GuardUCB(realised="worst")}),
    "anchors": (
        TWO,
        {"told": True},
        {"algorithm": gb.GuardUCB(baseline_tolerance=0.01, anchors=True, **STATED)},
    ),
    "holdback": (ONE, {}, {"holdback": 0.2, **STATED}),
    "values": (ONE, {"value": True}, STATED),
    "budget": (ONE, {"cost": True}, {"budget": gb.Budget(400.0, horizon=400), **STATED}),
    "window": (TWO, {}, {"window": 20, "drift": 1e-3, **STATED}),
    "alarms": (FOUR, {"turns": True}, {"delta_alarm": 0.2, **STATED}),
    "tolerant": (FOUR, {}, {"algorithm": gb.GuardUCB(tolerate=1, **STATED)}),
    "disc-ucb": (TWO, {"told": True}, {"algorithm": gb.DiscUCB(gate="none"), "horizon": 200}),
    "dis-lin-ucb": (TWO, {}, {"alpha": None, "algorithm": "dis-lin-ucb", "horizon": 200}),
}


def a_table(rng: np.random.Generator, actions: int) -> np.ndarray:
    """Return features with twins, near-twins, zeros, and numbers whose squares are subnormal."""
    table = rng.uniform(-0.1, 0.5, (actions, 4))
    if rng.random() < 0.5:
        table[rng.integers(actions)] = table[0]
        table[rng.integers(actions)] = table[0] * (1.0 + NEAR)
        table[rng.integers(actions)] *= rng.choice([0.0, 1e-160, 1e-310])
    return table


def play(tasks: dict[str, Any], given: dict[str, Any], settings: dict[str, Any]) -> list[Any]:
    """Return all that a fleet decides and knows: it gets late rewards, logs and overrides, too."""
    rng, seen, waiting = np.random.default_rng(5), [], []
    fleet = gb.Fleet(tasks, dim=4, seed=1, **{"alpha": 0.3} | settings)
    can_learn = not settings.get("window")
    for t in range(60):
        for agent in fleet.values():
            table, row, more = a_table(rng, 2 + t % 5), t % 2, {}
            worth = table @ THETA * (-1.0 if given.get("turns") and t > 40 else 1.0)
            if given.get("support"):
                shift = rng.uniform(-0.05, 0.05, table.shape)
                more = {"support": [table - shift, table + shift], "weights": [0.5, 0.5]}
            for name in {"value", "cost"} & set(given):
                more[name] = rng.uniform(0.0, 1.0, len(table))
            told = float(worth[row]) if given.get("told") and t % 5 else None
            made = agent.decide(table, row, told, **more)
            seen.append(made)
            k = made.action
            if t % 11 == 7 and "tolerate" not in str(settings):
                k = (k + 1) % len(table)
                agent.override(made, action=k)
            reward = float(np.clip(worth[k] + rng.normal(0.0, 0.05), 0.0, 1.0))
            waiting.append((agent, made, reward))
        if t % 4 < 2:
            for agent, made, reward in waiting[::-1]:
                agent.observe(made, reward)
            waiting = []
        if t == 30 and can_learn:
            agent.learn(a_table(rng, 6)[:, agent_features(agent)], rng.random(6))
    if not given and can_learn:
        for agent in fleet.values():
            many = agent.decide_many([a_table(rng, n) for n in (2, 5, 3)], [0, 1, 0])
            agent.observe_many(many, rng.random(3))
            seen += many
    return [*seen, fleet._group.engine.arrays(), fleet.poolings]


def agent_features(agent: Any) -> list[int]:
    return list(agent._group.tasks[agent._number])


def bits(value: Any) -> Any:
    """Return a value so that what is equal is equal to the last bit, types included."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, Weighed):
        return bits((value.certified, value.table))
    if isinstance(value, float):
        return type(value), value.hex()
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [type(value), *map(bits, value)]
    return type(value), value


NO_CODE = property(lambda _: None, lambda *_: None)  # machine code that never comes


@pytest.mark.parametrize("kind", KINDS)
def test_plain_and_compiled_kernels_decide_alike(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = play(*KINDS[kind])
    ran = set()

    def run_plain(kernel: Kernel, *args: Any) -> Any:
        ran.add(kernel.__name__)
        return plain.run(kernel, args)

    def refuse(kernel: Kernel, *args: Any) -> Any:
        raise AssertionError(f"{kernel.__name__} was compiled")

    monkeypatch.setattr(Kernel, "at_once", run_plain)
    monkeypatch.setattr(Kernel, "code", NO_CODE, raising=False)
    monkeypatch.setattr(Kernel, "__call__", refuse)
    for at, (one, other) in enumerate(zip(play(*KINDS[kind]), compiled, strict=True)):
        assert bits(one) == bits(other), at
    assert {"load_menu", "serve", "learn"} <= ran


def live_agents(folder: Path) -> None:
    """Let two tasks decide, learn, pool and read logs with a coordinator."""
    rng = np.random.default_rng(0)
    rules = {"features": list("abcd"), "agents": 2, "contexts": "per-request", "alpha": 0.3}
    settings = gb.SpaceSettings(name="home", **rules)
    for task in "ab":
        place = f"local:{folder}"
        with gb.connect(place, task=task, settings=settings, background=False, seed=0) as agent:
            for _ in range(8):
                agent.observe(agent.decide(a_table(rng, 4), 0), 0.4)
                agent.sync()
            agent.learn(a_table(rng, 3), rng.random(3))
            agent.report()


@pytest.mark.usefixtures("live_system")
def test_warming_up_compiles_all_that_agents_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the right types, too: else an image that was warmed up would compile again."""
    monkeypatch.undo()  # `at_once` as it is
    with collected() as wanted:
        rehearse()
    with collected() as called:
        for kind in KINDS.values():
            play(*kind)
        live_agents(tmp_path)
    assert {(kernel.__qualname__, kinds) for kernel, kinds in called} <= {
        (kernel.__qualname__, kinds) for kernel, kinds in wanted
    }


def test_large_agents_wait_and_small_ones_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []
    monkeypatch.setattr(Kernel, "when_ready", lambda kernel, *args: waited.append(kernel.__name__))
    monkeypatch.setattr(Kernel, "at_once", lambda kernel, *args: plain.run(kernel, args))
    monkeypatch.setattr(Kernel, "code", NO_CODE, raising=False)
    agent = gb.Agent(10)
    agent.observe(agent.decide(np.full((50, 10), 0.1), 0), 0.5)
    assert waited == []
    with pytest.raises(TypeError):  # what stands for the kernel returned nothing
        agent.decide(np.full((51, 10), 0.1), 0)
    assert waited == ["load_menu"]


WAITING = """
import asyncio, zlib
import numba.core.event as event
import numpy as np
import guardband as gb

async def work(agent):
    ticks, menu = 0, np.random.default_rng(1).uniform(0.0, 0.2, (500, 20))
    for _ in range(3):
        waiting = asyncio.create_task(agent.adecide(menu, 0))
        while not waiting.done():
            await asyncio.sleep(0.005)
            ticks += 1
        await agent.aobserve(await waiting, 0.5)
    return ticks >= 10

with event.install_recorder("numba:compile") as compiled:
    agent = gb.Agent(20, algorithm="dis-lin-ucb", horizon=100, seed=0)
    print(asyncio.run(work(agent)), len(compiled.buffer) > 0)
print(zlib.crc32(agent._group.engine.numbers.tobytes()))
"""


@pytest.mark.slow
def test_a_large_agent_that_waits_compiles_nothing_and_learns_alike(tmp_path: Path) -> None:
    """It waits in a thread of an event loop, which goes on."""
    agent = gb.Agent(20, algorithm="dis-lin-ucb", horizon=100, seed=0)
    menu = np.random.default_rng(1).uniform(0.0, 0.2, (500, 20))
    for _ in range(3):
        agent.observe(agent.decide(menu, 0), 0.5)
    learned = str(crc32(agent._group.engine.numbers.tobytes()))
    assert child(tmp_path, WAITING).stdout.split() == ["True", "False", learned]
