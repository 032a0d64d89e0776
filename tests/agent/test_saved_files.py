"""Saved files that are damaged, or that somebody made up: ValueError, before memory is taken."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import guardband as gb
from guardband.agent import looked_at
from guardband.kernels.monitors import CELLS, Note

TASKS = {"movies": [0, 1, 2], "tv": [0, 2]}
THETA = np.array([0.5, 0.6, 0.3])
MEGABYTE = 2**20
Parts = dict[str, Any]


def taught(**settings: Any) -> gb.Fleet:
    """Return a fleet that has pooled, with rewards that are still awaited."""
    fleet, rng = gb.Fleet(TASKS, dim=3, holdback=0.1, **settings), np.random.default_rng(0)
    for t in range(120):
        menu = rng.uniform(0, 0.5, (6, 3))
        for name, agent in fleet.items():
            worth = (menu * np.isin(range(3), TASKS[name])) @ THETA
            decision = agent.decide(menu, 2)
            if t % 7:
                agent.observe(decision, float(np.clip(worth[decision.action], 0, 1)))
    assert fleet.poolings
    return fleet


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return taught().save(tmp_path_factory.mktemp("saved") / "fleet.npz").read_bytes()


@pytest.fixture(scope="module")
def tolerant(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return taught(tolerate=1).save(tmp_path_factory.mktemp("saved") / "two.npz").read_bytes()


def parts_of(raw: bytes) -> Parts:
    with np.load(io.BytesIO(raw)) as file:
        return {name: file[name].copy() for name in file.files}


def written(path: Path, parts: Parts, about: dict[str, Any] | None = None) -> Path:
    """Write parts to a file, with other words about them."""
    if about is not None:
        parts = {**parts, "about": np.array(json.dumps(about))}
    np.savez(path, **parts)
    return path


@pytest.mark.parametrize("trials", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_flipped_bits_and_cut_ends_are_refused_or_harmless(
    saved: bytes, tmp_path: Path, trials: int
) -> None:
    path, rng, refused = tmp_path / "fleet.npz", np.random.default_rng(trials), 0
    whole = {name: part.tobytes() for name, part in parts_of(saved).items()}
    # Half of the flips hit where the parts are described: numbers are most of the file.
    described = [k for k in range(len(saved)) if saved[k : k + 2] == b"PK"]
    for trial in range(trials):
        damaged = bytearray(saved)
        if trial % 10 == 0:
            damaged = damaged[: int(rng.integers(len(saved)))]
        else:
            start = int(rng.choice(described)) if trial % 2 else int(rng.integers(len(saved)))
            place = min(start + int(rng.integers(128)), len(saved) - 1)
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            gb.Fleet.load(path)
        except ValueError:
            refused += 1
            continue
        found = {name: part.tobytes() for name, part in parts_of(bytes(damaged)).items()}
        assert found == whole  # such as a flipped bit in a date
    assert refused > trials / 2


def add(name: str, number: float, *place: Any) -> Callable[[Parts, Any], None]:
    """Return an edit that adds a number to a part."""

    def edit(parts: Parts, about: Any) -> None:
        parts[name][place or ...] += number

    return edit


def tell(name: str, value: Any) -> Callable[[Parts, Any], None]:
    """Return an edit of what is said about the parts."""

    def edit(parts: Parts, about: Any) -> None:
        about[name] = value

    return edit


def far_theta(parts: Parts, about: Any) -> None:
    parts["estimate_theta"][:] = 1e6


def scale(parts: Parts, about: Any) -> None:
    for name in ("pooled_gram", "pooled_moment"):
        parts[name] *= 1e6


def sure(parts: Parts, about: Any) -> None:
    """Make V, its inverse and theta fit to each other, but not to so few rewards."""
    for name in ("own_gram", "pooled_gram"):
        parts[name] *= 1e6
    v = np.eye(3) + parts["own_gram"] + parts["pooled_gram"]
    parts["estimate_inverse"][:] = np.linalg.inv(v)
    u = parts["own_moment"] + parts["pooled_moment"]
    parts["estimate_theta"][:] = np.linalg.solve(v, u[..., None])[..., 0]


def wait_for_more(parts: Parts, about: Any) -> None:
    about["pending"][0] = [*about["pending"][0][:-1], "movies-100000"]


def other_task(parts: Parts, about: Any) -> None:
    about["pending"][0] = [*about["pending"][0][:-1], "tv-1"]


EDITS = [
    (far_theta, "theta of task 'movies' is not that of its sums"),
    (scale, "larger than"),
    (sure, "larger than"),
    (add("estimate_theta", 0.01, 1, 0), "theta of task 'tv'"),
    (add("estimate_inverse", 0.01, 0, 1, 1), "inverse of task 'movies'"),
    (add("estimate_scalars", -1.0, 0, 0), "log det V"),
    (add("estimate_scalars", -9.0, 0, 1), "trace V"),
    (add("estimate_scalars", 1e9, 0, 2), "eigenvalue"),
    (add("pooled_gram", 0.5, 0, 1), "not symmetric"),
    (add("pooled_gram", -1e4, 0, 0), "not those of any"),
    (add("pooled_moment", 1e3, 0), "not those of any"),
    (add("pooled_scalars", 1e6, 1), "rewards outside their range"),
    (add("pooled_scalars", -0.5, 0), "count no observations"),
    (add("pooled_scalars", 1e4, 0), "more rewards than"),
    (add("own_scalars", 1e4, 0, 0), "more rewards than"),
    (add("pooled_scalars", -1e6, 2), "fit better than any prediction"),
    (add("pooled_scalars", 1e9, 3), "weights that"),
    (add("own_gram", 1e-3, 1, 1, 1), "features that it does not use"),
    (add("spent", -1.0, 0, 0), "trials"),
    (add("watch", 2.0, 0, int(Note.APART)), "monitors remember"),
    (add("watch", -5.0, 0, int(Note.LEVEL)), "share of delta"),
    (add("watch", 3.0, 0, int(Note.STARTS)), "share of delta"),
    (add("pending_x", 3.0, 0, 0), "features that it cannot have"),
    (add("pending_rest", 1e6, 0, 1), "a weight that it cannot have"),
    (add("pending_watch", 7.0, 0, 2), "a start that never was"),
    (wait_for_more, "no decision of task"),
    (other_task, "no decision of task"),
    (tell("rounds", [1, 1]), "agents pooled after"),
    (tell("rounds", [-1, 120]), "no counts"),
    (tell("rounds", [True, 120]), "no counts"),
    (tell("rounds", [10**400, 120]), "no counts"),
    (tell("rounds", [120]), "counters do not fit"),
    (tell("poolings", -5), "no counts"),
    (tell("next_coin", [2.0, 0.5]), "a coin"),
    (tell("next_coin", [float("nan"), 0.5]), "a coin"),
    (tell("logdet_pooled", float("nan")), "log det V"),
    (tell("gains", [[1e9, 0.0, 0.0], [0.0, 0.0, 0.0]]), "holdback"),
    (tell("dim", 10**9), "own_gram does not fit"),
    (tell("dim", 10**400), "own_gram does not fit"),
    (tell("dim", "3"), ""),
    (tell("horizon", 10**400), "horizon"),
    (tell("tasks", {"a": [0]} | {str(k): [0] for k in range(9)}), "own_gram does not fit"),
    (tell("tasks", [[[]]]), ""),
    (tell("coins", [{}, {}]), ""),
    (tell("alarms", None), ""),
    (tell("version", None), ""),
]


@pytest.mark.parametrize(("edit", "message"), EDITS)
def test_what_no_data_can_have_left_is_refused(
    saved: bytes, tmp_path: Path, edit: Callable[[Parts, Any], None], message: str
) -> None:
    parts = parts_of(saved)
    about = json.loads(str(parts["about"]))
    path = written(tmp_path / "same.npz", parts, about)
    assert gb.Fleet.load(path).poolings
    edit(parts, about)
    with pytest.raises(ValueError, match=f"damaged.*{message}"):
        gb.Fleet.load(written(path, parts, about))


def no_rows(parts: Parts, about: Any) -> None:
    """Give decisions that wait features of no length."""
    parts["pending_x"] = np.zeros((7, 0, 3))


def no_truth(name: str) -> Callable[[Parts, Any], None]:
    """Return an edit of an algorithm's setting that is true or false."""

    def edit(parts: Parts, about: Any) -> None:
        about["algorithm"][name] = 2

    return edit


def silence(parts: Parts, about: Any) -> None:
    """Give monitors mean rewards that nothing contradicts."""
    cells = parts["watch"][0, -3 * CELLS :].reshape(3, CELLS)
    cells[2] += np.where(cells[1] > 0, 1e6, 0.0)


# Numbers whose squares are no numbers any more; their products overflow to infinity, or to NaN.
HUGE = (1e155, -1e155, 1e300, -1e300, 1e308, -1e308)


def mixed(parts: Parts, about: Any) -> None:
    parts["estimate_inverse"][0] = [[1e308, -1e308, 1e308], [-1e308, 1e308, 1e308], [1e308] * 3]


def mixed_theta(parts: Parts, about: Any) -> None:
    parts["estimate_theta"][0] = [1e308, -1e308, 1e308]


@pytest.mark.filterwarnings("ignore")  # else an overflow would raise by itself
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        *((add("estimate_theta", value, 0), "theta of task 'movies'") for value in HUGE),
        *((add("estimate_theta", value, 1, 2), "theta of task 'tv'") for value in HUGE),
        *((add("estimate_inverse", value, 0), "inverse of task 'movies'") for value in HUGE),
        *((add("estimate_inverse", value, 1, 0, 2), "inverse of task 'tv'") for value in HUGE),
        *((add("pooled_gram", value), "") for value in HUGE),
        *((add("pooled_moment", value), "") for value in HUGE),
        *((add("pooled_scalars", value, k), "") for value in HUGE for k in range(6)),
        *((add("watch", value, 0, k), "") for value in HUGE[1::2] for k in range(16)),
        *((add("pending_x", value, 0), "features that it cannot") for value in HUGE),
        *((add("pending_rest", value, 0, 0), "that any data give") for value in HUGE),
        *((tell("logdet_pooled", value), "log det V of the pool") for value in HUGE),
        (mixed, "inverse of task 'movies'"),
        (mixed_theta, "theta of task 'movies'"),
        (tell("logdet_pooled", 0.5), "log det V of the pool is not that"),
        (add("pooled_scalars", 1.0, 5), "rows had been looked at"),
        (add("own_scalars", 1.0, 0, 5), "rows had been looked at"),
        (no_truth("share"), "share is neither"),
        (no_truth("pooled_set"), "pooled_set is neither"),
        (no_truth("shared_context"), "shared_context is neither"),
        (no_rows, "fits to no decisions"),
        *((add("watch", value, 0, int(Note.EVIDENCE)), "evidence of mon") for value in (-99, 99)),
        (silence, "cells of monitors"),
        (tell("calls", 2), "neither true nor false"),
        (tell("due_round", 10**6), "none that was"),
        (tell("rows", [10**6, 0]), "fewer rewards than rows"),
        (add("reports_anchored_scalars", 1.0), "whether reports contradict"),
    ],
)
def test_numbers_that_overflow_and_other_crumbs_are_refused(
    saved: bytes, tmp_path: Path, edit: Callable[[Parts, Any], None], message: str
) -> None:
    test_what_no_data_can_have_left_is_refused(saved, tmp_path, edit, message)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_estimate_theta", "theta of task 'movies' without another"),
        ("without_gram", "the sums without"),
    ],
)
def test_without_a_task_sums_and_estimates_must_fit_too(
    tolerant: bytes, tmp_path: Path, name: str, message: str
) -> None:
    parts = parts_of(tolerant)
    assert gb.Fleet.load(written(tmp_path / "two.npz", parts)).poolings
    parts[name] += 1e4
    with pytest.raises(ValueError, match=message):
        gb.Fleet.load(written(tmp_path / "two.npz", parts))
    del parts["without_estimate_inverse"]  # as many numbers as tasks squared
    with pytest.raises(ValueError, match="damaged"):
        gb.Fleet.load(written(tmp_path / "two.npz", parts))


def test_budgets_must_fit_to_what_was_decided(tmp_path: Path) -> None:
    agent = gb.Agent(dim=2, budget=gb.Budget(10.0, 100))
    agent.decide([[0.5, 0.1], [0.2, 0.3]], 0, cost=[0.1, 0.05])
    parts = parts_of(agent.save(tmp_path / "agent.npz").read_bytes())
    about = json.loads(str(parts["about"]))
    (numbers, charged) = about["purses"][0]
    for spent, costs in ((-5.0, charged), (11.0, charged), (0.1, {}), (0.1, {"agent-1": -3.0})):
        about["purses"] = [[[*numbers[:2], spent, *numbers[3:]], costs]]
        with pytest.raises(ValueError, match=r"budget|charged"):
            gb.Agent.load(written(tmp_path / "agent.npz", parts, about))


def bomb(path: Path, parts: Parts) -> None:
    """Write parts that unpack to a thousand times the file."""
    np.savez_compressed(path, **parts, zeros=np.zeros(100 * MEGABYTE // 8))


def boast(path: Path, parts: Parts) -> None:
    """Write a part whose header says that it has 8 TB."""
    np.savez(path, **parts)
    with zipfile.ZipFile(path, "a") as file, file.open("more.npy", "w") as part:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
        np.lib.format.write_array_header_1_0(part, header)


def pickled(path: Path, parts: Parts) -> None:
    np.savez(path, **parts, more=np.array([{}], object))


@pytest.mark.parametrize("make", [bomb, boast, pickled])
def test_nothing_is_unpacked_that_the_file_does_not_have(
    saved: bytes, tmp_path: Path, make: Callable[[Path, Parts], None]
) -> None:
    make(tmp_path / "fleet.npz", parts_of(saved))
    gb.Fleet.load  # what it imports is no part of what is measured  # noqa: B018
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="damaged"):
            gb.Fleet.load(tmp_path / "fleet.npz")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * MEGABYTE


def test_a_record_of_rows_looked_at_is_not_unpacked_beyond_its_limit(
    saved: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looked_at, "LARGEST_RECORD", 40 * MEGABYTE)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("rows.npy", bytes(50 * MEGABYTE))  # 50 kB packed
    parts = parts_of(saved) | {"looked_at": np.frombuffer(packed.getvalue(), np.uint8)}
    path = written(tmp_path / "fleet.npz", parts)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            gb.Fleet.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * MEGABYTE
