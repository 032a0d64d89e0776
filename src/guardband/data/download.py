"""Getting the original files: from their publisher, or from a copy the user has.

A download grows in a `.part` file by whole chunks. If the connection breaks, it resumes there, in
this call or a later one. Only the one wanted file is taken out of the archive, and it appears in
the cache only after its SHA-256 has been checked.
"""

from __future__ import annotations

import hashlib
import time
import zipfile
from os import PathLike
from pathlib import Path

import httpx

from guardband.data.cache import find, home, is_original, writing_to
from guardband.data.catalogue import DataError, Dataset, dataset
from guardband.files import write_atomically
from guardband.progress import ProgressBar

__all__ = ["BUSY", "CHUNK", "PAUSE", "TIMEOUT", "TRIES", "fetch", "import_file"]

TRIES = 5
PAUSE = 0.5  # seconds before the second try; doubled before each further one
TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 14
BAD = 400  # this status and above: there is no content
BUSY = (408, 425, 429, 500, 502, 503, 504)  # answers that may differ if asked again


def fetch(name: str, *, url: str | None = None, progress: bool = True) -> Path:
    """Download a data set into the cache, unless it is there already.

    Parameters
    ----------
    name
        One of `NAMES`.
    url
        Another address (http or https) of the same zip archive.
    progress
        Whether to show the progress on standard error.

    Returns
    -------
    The path of the checked file.

    Raises
    ------
    DataError
        If the archive cannot be had, or holds something else than the original file. What was
        downloaded before a failure stays in a `.part` file and the next call goes on from there.
    """
    entry = dataset(name)
    there = find(name)
    if there is not None and is_original(there, entry):
        return there
    source = entry.url if url is None else url
    part = home(entry).with_name(f"{entry.folder}.zip.part")
    resumed = part.exists()
    show = None if progress else False
    with writing_to(part.parent), ProgressBar(f"fetching {entry.title}", show) as bar:
        _download(source, part, bar)
        try:
            path = _keep(_unzip(part, entry, source), entry, source)
        except DataError:
            part.unlink()
            if not resumed:
                raise
        else:
            part.unlink()
            return path
    # The old beginning and the new end did not fit: once more, from the start.
    return fetch(name, url=url, progress=progress)


def import_file(name: str, path: str | PathLike[str]) -> Path:
    """Put a copy of a file the user has into the cache.

    Parameters
    ----------
    name
        One of `NAMES`.
    path
        The original data file, or the zip archive it came in.

    Returns
    -------
    The path of the checked file in the cache.

    Raises
    ------
    DataError
        If it is not the original file, or cannot be read.
    """
    entry = dataset(name)
    given = Path(path)
    try:
        with given.open("rb") as file:
            content = file.read(entry.size + 1)
    except OSError as error:
        raise DataError(
            given,
            error.strerror or str(error),
            f"{entry.file} or a zip archive with it",
            f"Check the path, or run `guardband data fetch {name}`.",
        ) from error
    if zipfile.is_zipfile(given):
        content = _unzip(given, entry, given)
    with writing_to(home(entry).parent):
        return _keep(content, entry, given)


def _unzip(archive: Path, entry: Dataset, source: str | Path) -> bytes:
    """Read the wanted file out of an archive; `source` is what an error names."""
    try:
        with zipfile.ZipFile(archive) as opened:
            members = opened.namelist()
            for member in members:
                if member.rpartition("/")[2] == entry.file:
                    with opened.open(member) as file:
                        return file.read(entry.size + 1)
    except Exception as error:  # by where the damage is: BadZipFile, zlib.error, OSError, ...
        found = f"a damaged archive ({error})"
        raise DataError(source, found, f"a zip archive with {entry.file}", entry.remedy) from error
    held = ", ".join(members[:5]) or "nothing"
    raise DataError(source, f"an archive with {held}", entry.file, entry.remedy)


def _keep(content: bytes, entry: Dataset, where: str | Path) -> Path:
    """Put the content of the original file, and nothing else, into the cache."""
    digest, size = hashlib.sha256(content).hexdigest(), len(content)
    if digest != entry.sha256:
        counted = f"{size:,} bytes" if size <= entry.size else f"more than {entry.size:,} bytes"
        raise DataError(
            where,
            f"{counted} with SHA-256 {digest[:12]}…",
            f"the original {entry.file}: {entry.size:,} bytes with {entry.sha256[:12]}…",
            "The file is cut short or altered. " + entry.remedy,
        )
    target = home(entry)
    with write_atomically(target) as file:
        file.write(content)
    return target


def _download(url: str, part: Path, bar: ProgressBar) -> None:
    """Bring `part` to the full length of what `url` serves, over as many requests as allowed."""
    if not url.startswith(("http://", "https://")):
        remedy = "For a file on this machine use `guardband data import`."
        raise DataError("address", repr(url), "one that begins with http:// or https://", remedy)
    part.parent.mkdir(parents=True, exist_ok=True)
    trouble = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE * 2 ** (attempt - 1))
        try:
            status = _append(url, part, bar)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            trouble = str(error) or type(error).__name__
            continue
        if status < BAD:
            return
        trouble = f"{status} {httpx.codes.get_reason_phrase(status)}"
        if status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink()  # too long to be a piece of the archive
        elif status not in BUSY:
            break
    if not _size(part):
        part.unlink(missing_ok=True)
    raise _unreachable(url, part, trouble)


def _append(url: str, part: Path, bar: ProgressBar) -> int:
    """Append what is missing of `url` to `part`, in one request; return the answer's status."""
    with part.open("ab") as file:
        size = file.tell()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={size}-"} if size else {})
        with httpx.stream(
            "GET", url, headers=headers, timeout=TIMEOUT, follow_redirects=True
        ) as answer:
            total = _total(answer)
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and total == size:
                return httpx.codes.OK  # it is whole already
            if answer.status_code >= BAD:
                return answer.status_code
            if answer.status_code == httpx.codes.OK:  # the server ignores ranges: from the start
                file.truncate(0)
            if total is not None:
                bar.expect(total)
            for chunk in answer.iter_bytes(CHUNK):
                file.write(chunk)
                bar.reach(file.tell())
            return answer.status_code


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _total(answer: httpx.Response) -> int | None:
    """Read the whole length out of `Content-Range: bytes 2-6/7` or `Content-Length: 7`."""
    told = answer.headers.get("Content-Range") or answer.headers.get("Content-Length", "")
    digits = told.rpartition("/")[2]
    return int(digits) if digits.isdecimal() else None


def _unreachable(url: str, part: Path, trouble: str) -> DataError:
    kept = f"{_size(part):,} bytes are kept and the next call goes on from there. "
    return DataError(
        url,
        trouble,
        "the zip archive",
        (kept if _size(part) else "")
        + "Check the connection and try again, or download it with a browser and run "
        "`guardband data import`.",
    )
