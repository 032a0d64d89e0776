import dataclasses
import hashlib
import json
import platform
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from guardband import data
from guardband.data import NAMES, DataError, build, factors, find
from guardband.data.catalogue import CATALOGUE

EMBEDDED = Path(str(resources.files("guardband.data"))) / "embedded"


def test_public_names() -> None:
    assert all(hasattr(data, name) for name in data.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_shape_and_range(name: str) -> None:
    users, items, provenance = factors(name)
    assert (len(users), len(items)) == CATALOGUE[name].shape
    assert users.shape[1] == items.shape[1] == 3
    for array in (users, items):
        assert array.dtype == np.float64
        assert array.min() >= 0
        np.testing.assert_array_equal(array, np.round(array, 6))
        assert (array.max(axis=1) > 0).all()
    assert provenance["sha256"] == CATALOGUE[name].sha256
    assert provenance["rank"] == 3
    assert provenance["shape"] == list(CATALOGUE[name].shape)


def test_held_out_error() -> None:
    """Less than 0.19 on the scale of 0 to 1: better than one star."""
    assert factors("movielens").provenance["held_out_rmse"] < 0.19
    assert factors("lastfm").provenance["held_out_rmse"] < 0.23


def test_no_baseline_of_movielens_is_worth_nothing() -> None:
    """The 40th best of any 50 movies is worth 0 only if 11 of them are; no user has so many."""
    users, items, _ = factors("movielens")
    for kept in ([0, 1, 2], [0, 1], [0, 2], [1, 2]):
        worthless = users[:, kept] @ items[:, kept].T == 0
        assert worthless.sum(axis=1).max() < 11


def test_small_enough_to_ship() -> None:
    assert sum(path.stat().st_size for path in EMBEDDED.iterdir()) < 200_000
    names = sorted(path.name for path in EMBEDDED.iterdir())
    assert names == ["lastfm.json", "lastfm.npz", "movielens.json", "movielens.npz"]


def test_absent_factors(tiny) -> None:
    with pytest.raises(DataError, match="Install guardband again"):
        factors("tiny")


@pytest.mark.parametrize("name", NAMES)
def test_build_wants_the_original(cache: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(DataError, match=f"no such file.*guardband data fetch {name}"):
        build(name, out)
    path = cache / name / CATALOGUE[name].file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1\t1\t5\t0\n")
    with pytest.raises(DataError, match="an altered file of 8 bytes"):
        build(name, out)
    assert not out.exists()


def test_build_of_a_small_file(cache: Path, tmp_path: Path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{u}\t{m}\t{rng.integers(1, 6)}\t0\n" for u in range(1, 31) for m in range(1, 21)]
    content = "".join(rows).encode()
    entry = dataclasses.replace(
        CATALOGUE["movielens"], size=len(content), sha256=hashlib.sha256(content).hexdigest()
    )
    monkeypatch.setitem(CATALOGUE, "movielens", entry)
    path = cache / "ml-100k" / "u.data"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    made = build("movielens", tmp_path / "one")
    build("movielens", tmp_path / "two")
    for file in ("movielens.npz", "movielens.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    with np.load(tmp_path / "one" / "movielens.npz") as arrays:
        np.testing.assert_array_equal(arrays["users"], made.users)
        np.testing.assert_array_equal(arrays["items"], made.items)
    assert json.loads((tmp_path / "one" / "movielens.json").read_text()) == made.provenance
    assert made.provenance["observed"] == 600


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                find(name) is None, reason=f"needs `guardband data fetch {name}`"
            ),
        )
        for name in NAMES
    ],
)
def test_build_gives_what_ships(name: str, tmp_path: Path) -> None:
    made, ships = build(name, tmp_path), factors(name)
    np.testing.assert_allclose(made.users, ships.users, rtol=0, atol=1e-5)
    np.testing.assert_allclose(made.items, ships.items, rtol=0, atol=1e-5)
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        for file in (f"{name}.npz", f"{name}.json"):
            assert (tmp_path / file).read_bytes() == (EMBEDDED / file).read_bytes()
