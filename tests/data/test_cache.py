from pathlib import Path

import platformdirs
import pytest

from guardband.data import NAMES, DataError, find, status
from guardband.data.cache import root, writing_to


def test_folder_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, ""):
        if value is None:
            monkeypatch.delenv("GUARDBAND_DATA", raising=False)
        else:
            monkeypatch.setenv("GUARDBAND_DATA", value)
        assert root() == Path(platformdirs.user_cache_dir("guardband", False)) / "data"


def test_nothing_there(cache: Path) -> None:
    assert find("movielens") is None
    assert [(s.name, s.state, s.size) for s in status()] == [(n, "missing", 0) for n in NAMES]
    assert status()[0].path == cache / "movielens" / "u.data"
    assert not cache.exists()


@pytest.mark.parametrize("folder", ["tiny", "tiny-1"])
def test_both_layouts(cache, tiny, folder: str) -> None:
    path = cache / folder / "tiny.dat"
    path.parent.mkdir(parents=True)
    path.write_bytes(tiny.content)
    assert find("tiny") == path
    record = status()[-1]
    assert (record.state, record.path, record.size) == ("ready", path, len(tiny.content))


def test_altered_file_is_told(cache, tiny) -> None:
    path = cache / "tiny" / "tiny.dat"
    path.parent.mkdir(parents=True)
    path.write_bytes(tiny.content[:-1])
    assert status()[-1].state == "altered"


def test_unwritable_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    target = tmp_path / "taken" / "file"
    with pytest.raises(DataError, match="set GUARDBAND_DATA"), writing_to(target.parent):
        target.write_text("")
