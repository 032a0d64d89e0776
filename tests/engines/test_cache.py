"""The cache: what was put comes back, and what is damaged or foreign never does."""

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

from guardband.engines import CacheEntry, ResultCache
from guardband.engines import cache as module

ENTRY = CacheEntry(
    {"totals": np.linspace(0.0, 1.0, 30).reshape(3, 10), "syncs": np.arange(7)},
    {"seconds": 0.1, "traffic": [6, 54]},
)


def entries(cache: ResultCache) -> list[Path]:
    return [path for path in cache.folder.rglob("*") if path.is_file()]


def same(found: CacheEntry | None, given: CacheEntry) -> bool:
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
    cache = ResultCache(tmp_path_factory.mktemp("cache"))
    entry = CacheEntry({"floats": floats, "ints": ints}, notes)
    assert cache.get(key) is None
    assert key not in cache
    cache.put(key, entry)
    assert key in cache
    assert same(cache.get(key), entry)
    assert cache.damaged == 0
    assert len(entries(cache)) == 1


def test_any_flipped_byte_is_noticed(tmp_path: Path) -> None:
    """Either the entry is refused, or the byte was one that says nothing about the result."""
    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    (path,) = entries(cache)
    good = path.read_bytes()
    refused = 0
    for place in random.Random(0).sample(range(len(good)), 300):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0xFF]) + good[place + 1 :])
        found = cache.get("key")
        refused += found is None
        assert found is None or same(found, ENTRY)
    assert refused == cache.damaged > 200


def test_any_flipped_bit_is_noticed(tmp_path: Path) -> None:
    """Each bit alone: one of them says that the archive is encrypted, others that it is huge."""
    cache = ResultCache(tmp_path)
    small = CacheEntry({"totals": np.arange(2.0)}, {})
    cache.put("key", small)
    (path,) = entries(cache)
    good = path.read_bytes()
    for place, byte in enumerate(good):
        for bit in range(8):
            path.write_bytes(good[:place] + bytes([byte ^ 1 << bit]) + good[place + 1 :])
            found = cache.get("key")
            assert found is None or same(found, small)
    assert cache.damaged > len(good)


def test_a_cache_that_others_own_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(1, "Operation not permitted")

    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    monkeypatch.setattr(module.os, "utime", refused)
    assert same(cache.get("key"), ENTRY)
    assert cache.damaged == 0


def test_what_another_process_forgets_meanwhile_is_not_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    read = module._read

    def late(path: Path, key: str) -> CacheEntry:
        path.unlink()
        return read(path, key)

    monkeypatch.setattr(module, "_read", late)
    assert cache.get("key") is None
    assert cache.damaged == 0


def test_a_changed_number_is_noticed_even_in_a_sound_archive(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    (path,) = entries(cache)
    with np.load(path) as archive:
        held = {name: archive[name] for name in archive.files}
    held["totals"][0, 0] += 1e-12
    with path.open("wb") as file:
        np.savez(file, **held)
    assert cache.get("key") is None
    assert cache.damaged == 1


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_entry_is_noticed(tmp_path: Path, kept: float) -> None:
    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    (path,) = entries(cache)
    os.truncate(path, int(kept * path.stat().st_size))
    assert cache.get("key") is None
    assert cache.damaged == 1
    cache.put("key", ENTRY)
    assert same(cache.get("key"), ENTRY)


def test_an_entry_under_another_name_is_noticed(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.put("one", ENTRY)
    (one,) = entries(cache)
    cache.put("two", ENTRY._replace(notes={"seconds": 2.0}))
    (two,) = set(entries(cache)) - {one}
    contents = one.read_bytes(), two.read_bytes()
    two.write_bytes(contents[0])
    one.write_bytes(contents[1])
    assert cache.get("one") is None
    assert cache.get("two") is None
    assert cache.damaged == 2


def test_another_format_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ResultCache(tmp_path)
    monkeypatch.setattr(module, "FORMAT", 0)
    cache.put("key", ENTRY)
    monkeypatch.undo()
    assert cache.get("key") is None
    assert cache.damaged == 1


@pytest.mark.parametrize("text", [b"", b"not an archive", json.dumps({"key": "key"}).encode()])
def test_foreign_files_are_noticed(tmp_path: Path, text: bytes) -> None:
    cache = ResultCache(tmp_path)
    cache.put("key", ENTRY)
    (path,) = entries(cache)
    path.write_bytes(text)
    assert cache.get("key") is None
    assert cache.damaged == 1


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    """Unpickling runs code: a cache that others can write to must never do it."""
    cache = ResultCache(tmp_path)
    with pytest.raises(ValueError, match="arrays of objects"):
        cache.put("key", CacheEntry({"things": np.array([object()])}, {}))
    assert entries(cache) == []
    cache.put("key", ENTRY)
    (path,) = entries(cache)
    with path.open("wb") as file:
        np.savez(file, about=np.array([{"format": 1}], dtype=object))
    assert cache.get("key") is None


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    cache = ResultCache(tmp_path)
    monkeypatch.setattr(module.np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space"):
        cache.put("key", ENTRY)
    assert entries(cache) == []


def test_what_nobody_asks_for_is_forgotten(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    for key in ("old", "read", "new"):
        cache.put(key, ENTRY)
    (tmp_path / "note.txt").write_text("not an entry")
    for path in entries(cache):
        os.utime(path, (0, 0))
    assert same(cache.get("read"), ENTRY)
    cache.put("new", ENTRY)
    assert cache.prune(days=30) == 1
    assert ("old" in cache, "read" in cache, "new" in cache) == (False, True, True)
    assert (tmp_path / "note.txt").exists()
    assert ResultCache(tmp_path / "nowhere").prune(days=1) == 0


def test_files_of_others_are_never_forgotten(tmp_path: Path) -> None:
    """Somebody may point GUARDBAND_TRIALS at a folder that holds more than trials."""
    cache = ResultCache(tmp_path)
    cache.put("old", ENTRY)
    (entry,) = entries(cache)
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
    for path in entries(cache):
        os.utime(path, (0, 0))
    assert cache.prune(days=30) == 2
    assert sorted(entries(cache)) == sorted(others)
