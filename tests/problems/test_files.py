from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import guardband as gb
from guardband.problems import StudentNoise, from_file

PHI = np.random.default_rng(1).uniform(0, 0.5, (3, 4, 2))
PSI = PHI + 0.01
THETA = [0.8, 0.6]


def write_csv(path: Path, rows: list[str] | None = None, header: str | None = None) -> Path:
    if rows is None:
        rows = [
            ",".join(map(repr, [c, k, *PHI[c, k].tolist(), *PSI[c, k].tolist()]))
            for c in range(3)
            for k in range(4)
        ]
        rows.reverse()  # any order will do
    header = "context,action,phi_1,phi_2,psi_1,psi_2" if header is None else header
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_npz_holds_everything(tmp_path: Path) -> None:
    path = tmp_path / "shop.npz"
    baseline = np.array([[0, 1, 2], [3, 2, 1]])
    np.savez(path, phi=PHI, psi=PSI, theta=THETA, tasks=[[1, 1], [0, 1]], baseline=baseline)
    made = from_file(path, reward_std=StudentNoise(0.1))
    world = made.build(0)
    assert made.name == "shop"
    assert_array_equal(world.phi, PHI)
    assert_array_equal(world.psi, PSI)
    assert_allclose(world.theta, THETA)
    assert world.tasks == ((0, 1), (1,))
    assert_array_equal(world.baseline, baseline)
    assert world.reward_noise == StudentNoise(0.1)


def test_arguments_come_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.npz"
    np.savez(path, phi=PHI, psi=PSI, theta=THETA, tasks=[[1, 1]], baseline=2)
    given = from_file(path, theta=[0.1, 0.2], tasks=[[0], [1]], baseline=1).build(0)
    assert_allclose(given.theta, [0.1, 0.2])
    assert given.tasks == ((0,), (1,))
    assert_array_equal(given.baseline[0], PHI[:, :, 0].argmax(axis=1))
    held = from_file(path).build(0)
    assert_array_equal(held.baseline[0], np.argsort(-(PHI @ THETA), axis=1)[:, 1])


def test_csv_with_theta_given_or_beside_it(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "shop.csv")
    world = from_file(path, theta=THETA, baseline=3).build(0)
    assert_array_equal(world.phi, PHI)
    assert_array_equal(world.psi, PSI)
    for text in ("0.8,0.6\n", "0.8\n0.6\n"):
        (tmp_path / "theta.csv").write_text(text)
        assert_allclose(from_file(str(path)).build(0).theta, THETA)


def test_it_can_be_simulated(tmp_path: Path) -> None:
    made = from_file(write_csv(tmp_path / "shop.csv"), theta=THETA, baseline=2, reward_std=0.01)
    settings: dict[str, Any] = dict(made.assumptions())
    del settings["rounds"]
    results = gb.simulate(made, gb.DiscUCB(**settings), rounds=100, progress=False)
    assert results.problem == "shop"


GOOD = {"phi": PHI, "psi": PSI, "theta": THETA}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"phi": PHI, "psi": PSI}, r"no array 'theta': save one of shape .d,. in it, or pass"),
        ({"phi": PHI, "theta": THETA}, "holds phi, theta, but no array 'psi'"),
        ({}, "holds nothing, but no array 'phi'"),
        ({**GOOD, "psy": PSI}, "holds an array 'psy'; .* Did you mean 'psi'"),
        ({**GOOD, "psi": PSI[:2]}, r"psi must have shape \(3, 4, 2\), not \(2, 4, 2\)"),
        ({**GOOD, "phi": PHI[:0]}, r"phi must have shape .* not \(0, 4, 2\)"),
        ({**GOOD, "theta": [1.0]}, r"theta must have shape \(2\), not \(1,\)"),
        ({**GOOD, "tasks": [[1, 2]]}, "tasks must be an .* table of zeros and ones"),
        ({**GOOD, "tasks": [[0, 0]]}, r"tasks\[0\] is empty"),
        ({**GOOD, "baseline": [[0, 0, 9]]}, "baseline names action 9"),
        ({**GOOD, "baseline": 7}, "baseline is rank 7, but there are only 4 actions"),
        ({**GOOD, "phi": np.where(PHI > 0.4, np.nan, PHI)}, "nan: every number must be finite"),
    ],
)
def test_a_wrong_npz_is_explained(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=words) as caught:
        from_file(path)
    assert "mine.npz" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"not a zip at all"])
def test_a_broken_npz_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"no readable npz file .*numpy\.savez"):
        from_file(path)


def test_a_single_array_is_no_npz(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    with path.open("wb") as file:
        np.save(file, PHI)
    with pytest.raises(ValueError, match="no readable npz file"):
        from_file(path)


def test_pickled_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, phi=np.array([None]), allow_pickle=True)
    with pytest.raises(ValueError, match="no readable npz file"):
        from_file(path)


ONE = "0,0,.1,.2,.1,.2"


@pytest.mark.parametrize(
    ("header", "rows", "words"),
    [
        (None, [], "has no rows: write one per context and action"),
        ("context;action;phi_1;psi_1", ["0;0;1;1"], "missing: context, action.* commas"),
        ("context,action,phi_1,psi_1,psi_3", ["0,0,1,1,1"], "column 'psi_3' .* remove it"),
        ("context,action,phi_1,phi_2,psi_1", ["0,0,1,1,1"], "missing: psi_2"),
        ("context,action", ["0,0"], "missing: phi_1, psi_1"),
        (None, [ONE, "0,1,.1,x,.1,.2"], "row 2, column phi_2: 'x' is no finite number"),
        (None, [ONE, "0,1,.1,,.1,.2"], "row 2, column phi_2: .*nan"),
        (None, [ONE, ONE], "context 0 with action 0 2 times: keep one"),
        (None, [ONE, "1,1,.1,.2,.1,.2"], "no row for context 0 with action 1"),
        (None, [ONE, "0,1,.1,.2,.1,.2", "1,0,.1,.2,.1,.2"], "no row for context 1 with action 1"),
        (None, [ONE, "0,.5,.1,.2,.1,.2"], "action 0.5 in 2 rows: number both 0, 1, 2"),
        (None, ["7,12,.1,.2,.1,.2"], "context 7 with action 12 in 1 rows: number both"),
        (None, [ONE + ",9,9,9"], "rows with more values than columns"),
    ],
)
def test_a_wrong_csv_is_explained(
    tmp_path: Path, header: str | None, rows: list[str], words: str
) -> None:
    path = write_csv(tmp_path / "mine.csv", rows, header)
    with pytest.raises(ValueError, match=words) as caught:
        from_file(path, theta=THETA)
    assert "mine.csv" in str(caught.value)


def test_other_mistakes_are_explained(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*none\.csv: check the path"):
        from_file(tmp_path / "none.csv")
    (tmp_path / "shop.xlsx").touch()
    with pytest.raises(ValueError, match=r"shop\.xlsx is neither \.npz nor \.csv"):
        from_file(tmp_path / "shop.xlsx")
    path = write_csv(tmp_path / "shop.csv")
    with pytest.raises(ValueError, match=r"has no theta: pass theta=.* or write .*theta\.csv"):
        from_file(path)
    (tmp_path / "theta.csv").write_text("0.8\nnothing\n")
    with pytest.raises(ValueError, match=r"theta\.csv, row 2, column 0: 'nothing'"):
        from_file(path)
    (tmp_path / "empty.csv").touch()
    with pytest.raises(ValueError, match=r"empty\.csv is no table"):
        from_file(tmp_path / "empty.csv")
