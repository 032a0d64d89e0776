"""The shelf: what was put comes back, and what is damaged or foreign never does."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from guardband.engines import Parcel, Shelf
from guardband.engines import shelf as module

PARCEL = Parcel(
    {"totals": np.linspace(0.0, 1.0, 30).reshape(3, 10), "syncs": np.arange(7)},
    {"seconds": 0.1, "traffic": [6, 54]},
)


def entries(shelf: Shelf) -> list[Path]:
    return [path for path in shelf.folder.rglob("*") if path.is_file()]


def same(found: Parcel | None, given: Parcel) -> bool:
    return (
        found is not None
        and dict(found.notes) == dict(given.notes)
        and set(found.arrays) == set(given.arrays)
        and all(
            found.arrays[name].dtype == array.dtype and np.array_equal(found.arrays[name], array)
            for name, array in given.arrays.items()
        )
    )


@given(
    arrays(np.float64, array_shapes(), elements=st.floats(allow_nan=False)),
    arrays(np.int64, array_shapes()),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.text() | st.integers()),
    st.text(),
)
def test_what_was_put_comes_back(
    tmp_path_factory: pytest.TempPathFactory,
    floats: np.ndarray,
    ints: np.ndarray,
    notes: dict[str, object],
    key: str,
) -> None:
    shelf = Shelf(tmp_path_factory.mktemp("shelf"))
    parcel = Parcel({"floats": floats, "ints": ints}, notes)
    assert shelf.get(key) is None
    assert key not in shelf
    shelf.put(key, parcel)
    assert key in shelf
    assert same(shelf.get(key), parcel)
    assert shelf.spoilt == 0
    assert len(entries(shelf)) == 1


def test_any_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """Either the entry is refused, or the byte was one that says nothing about the result."""
    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    (path,) = entries(shelf)
    good = path.read_bytes()
    refused = 0
    for place in random.Random(0).sample(range(len(good)), 300):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        found = shelf.get("key")
        refused += found is None
        assert found is None or same(found, PARCEL)
    assert refused == shelf.spoilt > 200


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Each bit alone: one of them says that the archive is encrypted, others that it is huge."""
    shelf = Shelf(tmp_path)
    small = Parcel({"totals": np.arange(2.0)}, {})
    shelf.put("key", small)
    (path,) = entries(shelf)
    good = path.read_bytes()
    for place, byte in enumerate(good):
        for bit in range(8):
            path.write_bytes(good[:place] + bytes([byte ^ 1 << bit]) + good[place + 1 :])
            found = shelf.get("key")
            assert found is None or same(found, small)
    assert shelf.spoilt > len(good)


def test_a_shelf_that_others_own_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    monkeypatch.setattr(module.os, "utime", refused)
    assert same(shelf.get("key"), PARCEL)
    assert shelf.spoilt == 0


def test_what_another_process_forgets_meanwhile_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    read = module._read

    def late(path: Path, key: str) -> Parcel:
        path.unlink()
        return read(path, key)

    monkeypatch.setattr(module, "_read", late)
    assert shelf.get("key") is None
    assert shelf.spoilt == 0


def test_a_changed_number_is_noticed_even_in_a_sound_archive(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    (path,) = entries(shelf)
    with np.load(path) as archive:
        held = {name: archive[name] for name in archive.files}
    held["totals"][0, 0] += 1e-12
    with path.open("wb") as file:
        np.savez(file, **held)
    assert shelf.get("key") is None
    assert shelf.spoilt == 1


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_entry_is_noticed(tmp_path: Path, kept: float) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    (path,) = entries(shelf)
    os.truncate(path, int(kept * path.stat().st_size))
    assert shelf.get("key") is None
    assert shelf.spoilt == 1
    shelf.put("key", PARCEL)
    assert same(shelf.get("key"), PARCEL)


def test_an_entry_under_another_name_is_noticed(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("one", PARCEL)
    (one,) = entries(shelf)
    shelf.put("two", PARCEL._replace(notes={"seconds": 2.0}))
    (two,) = set(entries(shelf)) - {one}
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    assert shelf.get("one") is None
    assert shelf.get("two") is None
    assert shelf.spoilt == 2


def test_another_format_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf(tmp_path)
    monkeypatch.setattr(module, "FORMAT", 0)
    shelf.put("key", PARCEL)
    monkeypatch.undo()
    assert shelf.get("key") is None
    assert shelf.spoilt == 1


@pytest.mark.parametrize("text", [b"", b"not an archive", json.dumps({"key": "key"}).encode()])
def test_foreign_files_are_noticed(tmp_path: Path, text: bytes) -> None:
    shelf = Shelf(tmp_path)
    shelf.put("key", PARCEL)
    (path,) = entries(shelf)
    path.write_bytes(text)
    assert shelf.get("key") is None
    assert shelf.spoilt == 1


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    """Unpickling runs code: a shelf that others can write to must never do it."""
    shelf = Shelf(tmp_path)
    with pytest.raises(ValueError, match="allow_pickle"):
        shelf.put("key", Parcel({"things": np.array([object()])}, {}))
    assert entries(shelf) == []
    shelf.put("key", PARCEL)
    (path,) = entries(shelf)
    with path.open("wb") as file:
        np.savez(file, about=np.array([{"format": 1}], dtype=object))
    assert shelf.get("key") is None


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    shelf = Shelf(tmp_path)
    monkeypatch.setattr(module.np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        shelf.put("key", PARCEL)
    assert entries(shelf) == []


def test_what_nobody_asks_for_is_forgotten(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)
    for key in ("old", "read", "new"):
        shelf.put(key, PARCEL)
    (tmp_path / "note.txt").write_text("not an entry")
    for path in entries(shelf):
        os.utime(path, (0, 0))
    assert same(shelf.get("read"), PARCEL)
    shelf.put("new", PARCEL)
    assert shelf.forget(days=30) == 1
    assert ("old" in shelf, "read" in shelf, "new" in shelf) == (False, True, True)
    assert (tmp_path / "note.txt").exists()
    assert Shelf(tmp_path / "nowhere").forget(days=1) == 0


def test_files_of_others_are_never_forgotten(tmp_path: Path) -> None:
    """Somebody may point GUARDBAND_TRIALS at a folder that holds more than trials."""
    shelf = Shelf(tmp_path)
    shelf.put("old", PARCEL)
    (entry,) = entries(shelf)
    draft = (
        entry.parent / f".{entry.name}.0123abcd.part"
    )  # of a process that was killed while it wrote
    others = [
        tmp_path / "gb" / "coordinator.db",
        tmp_path / "ab" / "data.npz",
        entry.parent / "notes.txt",
        entry.parent / f"{entry.stem}.npz.bak",
    ]
    for path in (draft, *others):
        path.parent.mkdir(exist_ok=True)
        path.write_text("precious")
    for path in entries(shelf):
        os.utime(path, (0, 0))
    assert shelf.forget(days=30) == 2
    assert sorted(entries(shelf)) == sorted(others)
