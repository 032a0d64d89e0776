"""A cache of the test's own, and a small data set with an archive to put there."""

import hashlib
import io
import random
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from guardband.data.catalogue import CATALOGUE, Dataset


@dataclass(frozen=True)
class Tiny:
    entry: Dataset
    content: bytes  # of the file
    archive: bytes  # the zip it comes in


def zipped(**members: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("GUARDBAND_DATA", str(folder))
    return folder


@pytest.fixture
def tiny(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """A data set in the catalogue whose archive takes several reads."""
    content = random.Random(0).randbytes(300_000)
    entry = Dataset(
        name="tiny",
        title="Tiny",
        url="https://example.invalid/tiny-1.zip",
        folder="tiny-1",
        file="tiny.dat",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        rows=1,
        shape=(1, 1),
        licence="none",
    )
    monkeypatch.setitem(CATALOGUE, "tiny", entry)
    members = {"tiny-1/README": b"hello", "tiny-1/tiny.dat": content, "tiny-1/more": b"more"}
    return Tiny(entry, content, zipped(**members))


def files(folder: Path) -> list[str]:
    """All files under a folder, by name."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
