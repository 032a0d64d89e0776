"""Content keys: whatever changes a number changes the key, and nothing else does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

import guardband as gb
from guardband.algorithms import Algorithm
from guardband.lab.panel import Run
from guardband.lab.runs import trials_of
from guardband.problems import Problem
from guardband.sim import keys

PROBLEM = gb.problem("synthetic-b")


def run_of(algorithm: Algorithm, problem: Problem = PROBLEM, **changes: Any) -> Run:
    run = Run(
        label=algorithm.name,
        problem=problem,
        algorithm=algorithm,
        rounds=300,
        trials=3,
        seed=5,
        alpha=0.25,
    )
    return replace(run, **changes)


@dataclass(frozen=True)
class Mine:
    """An algorithm of a user's own."""

    name: str = "mine"
    constrained: bool = False

    def plan(self, facts: Any) -> Any:
        return gb.algorithms.LinUCB().plan(facts)


def keys_of(run: Run) -> set[str]:
    return {trial.key for trial in trials_of(run)}


def test_whatever_changes_numbers_changes_the_key() -> None:
    phi = np.linspace(0.0, 0.5, 24).reshape(4, 3, 2)
    base = run_of(gb.DisLinUCB(), trials=1)
    others = [
        replace(base, rounds=301),
        replace(base, seed=6),
        replace(base, alpha=0.3),
        replace(base, alpha=None),
        replace(base, algorithm=gb.DisLinUCB(ridge=2.0)),
        replace(base, algorithm=gb.algorithms.LinUCB()),
        replace(base, algorithm=gb.GuardUCB(alpha=(0.1, 0.2, 0.3))),
        replace(base, algorithm=gb.algorithms.Guarded(gb.algorithms.LinUCB(), 0.1)),
        replace(base, algorithm=gb.algorithms.Guarded(gb.algorithms.LinUCB(ridge=2.0), 0.1)),
        replace(base, algorithm=Mine()),
        replace(base, problem=gb.problem("synthetic-b", baseline=3)),
        replace(base, problem=gb.problem("synthetic-b", reward_std=gb.problems.StudentNoise(1e-3))),
        replace(base, problem=gb.problem("synthetic-c")),
        replace(base, problem=gb.Tabular(phi, phi, [1.0, 0.5])),
        replace(base, problem=gb.Tabular(phi, phi + 1e-9, [1.0, 0.5])),
    ]
    keys = [key for run in [base, *others] for key in keys_of(run)]
    assert len(set(keys)) == len(keys) == 1 + len(others)


def test_nothing_else_does() -> None:
    phi = np.linspace(0.0, 0.5, 24).reshape(4, 3, 2)
    base = run_of(gb.DisLinUCB(), gb.Tabular(phi, phi, [1.0, 0.5]))
    again = run_of(gb.DisLinUCB(), gb.Tabular(phi.copy(), phi.copy(), [1.0, 0.5]), label="other")
    assert keys_of(base) == keys_of(again)
    assert keys_of(base) < keys_of(replace(again, trials=4))


def test_other_source_gives_other_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = run_of(gb.DisLinUCB())
    before = keys_of(run)
    for name in (*keys.PACKAGES, *keys.FILES):
        source = keys.ROOT / name
        target = tmp_path / name
        if source.is_dir():
            target.mkdir()
            for path in [*source.rglob("*.py"), *source.rglob("*.npz")]:
                copy = target / path.relative_to(source)
                copy.parent.mkdir(exist_ok=True)
                copy.write_bytes(path.read_bytes())
        else:
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(source.read_bytes())
    monkeypatch.setattr(keys, "ROOT", tmp_path)
    seen = set()
    edits = (
        "kernels/sync.py",
        "sim/draws.py",
        "seeds.py",
        "sim/trial.py",
        "data/embedded/lastfm.npz",
    )
    for edited in edits:
        with (tmp_path / edited).open("ab") as file:
            file.write(b"\n")
        keys.origin.cache_clear()
        seen.add(keys.origin())
    keys.origin.cache_clear()
    monkeypatch.undo()
    assert len(seen) == len(edits)
    assert keys_of(run) == before


@pytest.mark.parametrize("what", ["processor", "features", "python", "machine", "flag", "blas"])
def test_another_machine_gives_other_keys(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """All that can change a rounding: kept trials of one kind of machine are not another's."""
    before = keys.origin()
    changed: dict[str, Any] = {
        "processor": (keys.llvm, "get_host_cpu_name", lambda: "another"),
        "features": (keys.llvm, "get_host_cpu_features", llvmlite.binding.FeatureMap),
        "python": (keys.platform, "python_version_tuple", lambda: ("3", "99", "0")),
        "machine": (keys.platform, "machine", lambda: "another"),
        "flag": (keys.numba.config, "BOUNDSCHECK", 1),
        "blas": (keys.np, "show_config", lambda mode: {}),
    }
    monkeypatch.setattr(*changed[what])
    keys.origin.cache_clear()
    other = keys.origin()
    monkeypatch.undo()
    keys.origin.cache_clear()
    assert other != before == keys.origin()


def test_what_cannot_be_told_apart_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd(Mine):
        rule: Any = min

    with pytest.raises(TypeError, match="cannot be told apart from others by its content"):
        keys_of(run_of(Odd()))


def test_a_class_without_a_file_is_refused() -> None:
    """One of the same name and fields, made at a prompt tomorrow, would get today's numbers."""
    space: dict[str, Any] = {"__name__": "nowhere", "Mine": Mine, "dataclass": dataclass}
    exec("@dataclass(frozen=True)\nclass Typed(Mine): pass", space)
    with pytest.raises(TypeError, match=r"nowhere\.Typed has no source file"):
        keys_of(run_of(space["Typed"]()))
