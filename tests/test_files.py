from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from guardband.files import DRAFT, write_atomically


def test_a_failed_write_keeps_the_old_file_on_failure(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted() -> Iterator[bytes]:
        yield b"half"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), write_atomically(path) as file:
        file.writelines(interrupted())
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    with write_atomically(path, private=True) as file:
        file.write(b"new")
        (draft,) = path.parent.iterdir()
        assert file.name == str(draft)
        assert re.fullmatch(DRAFT, draft.name)
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_made_once_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with write_atomically(path, private=True, once=True) as file:
        file.write(b"first")
    with pytest.raises(FileExistsError), write_atomically(path, once=True) as file:
        file.write(b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]
