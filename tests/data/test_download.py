"""Downloads from a server on this machine that cuts, ignores ranges, fails and lies."""

import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from guardband.data import DataError, download, fetch, find, import_file

from .conftest import files, zipped

PART = "tiny/tiny-1.zip.part"
FILE = "tiny/tiny.dat"


class Server(ThreadingHTTPServer):
    """Serves one archive; each request takes the next cut and the next status, if any."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = content
        self.ranges = True  # whether Range is honoured
        self.sized = True  # whether lengths are told
        self.cuts: list[int] = []  # bytes to send before the connection is cut
        self.statuses: list[int] = []
        self.asked: list[str | None] = []  # the Range of each request
        self.url = f"http://127.0.0.1:{self.server_port}/tiny-1.zip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append(wanted)
        if server.statuses:
            self.send_error(server.statuses.pop(0))
            return
        start, total = 0, len(server.content)
        if wanted and server.ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= total:
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{total}")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        else:
            self.send_response(200)
        if server.sized:
            self.send_header("Content-Length", str(total - start))
        self.end_headers()
        body = server.content[start:]
        self.wfile.write(body[: server.cuts.pop(0)] if server.cuts else body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tiny, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(download, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    with Server(tiny.archive) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_plain(server: Server, cache: Path, tiny) -> None:
    path = fetch("tiny", url=server.url)
    assert path == cache / FILE == find("tiny")
    assert path.read_bytes() == tiny.content
    assert files(cache) == [FILE]
    assert server.asked == [None]


def test_already_there(server: Server, cache: Path) -> None:
    assert fetch("tiny", url=server.url) == fetch("tiny", url="http://127.0.0.1:1/unreachable")
    assert len(server.asked) == 1


def test_altered_copy_is_replaced(server: Server, cache: Path, tiny) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / FILE).write_bytes(b"altered")
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content


def test_cuts_are_resumed(server: Server, cache: Path, tiny) -> None:
    chunk = download.CHUNK
    server.cuts = [6 * chunk + 9, 4 * chunk, 1]  # what does not fill a chunk is asked for again
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content
    assert server.asked == [None, *(f"bytes={n * chunk}-" for n in (6, 10, 10))]
    assert files(cache) == [FILE]


def test_cut_at_once_is_retried(server: Server, tiny) -> None:
    server.cuts = [0]
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content


def test_a_later_call_goes_on(server: Server, cache: Path, tiny) -> None:
    server.cuts = [download.CHUNK] * download.TRIES
    kept = download.CHUNK * download.TRIES
    with pytest.raises(DataError, match=f"{kept:,} bytes are kept") as caught:
        fetch("tiny", url=server.url)
    assert caught.value.where == server.url
    assert files(cache) == [PART]
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content
    assert server.asked[-1] == f"bytes={kept}-"
    assert files(cache) == [FILE]


def test_server_without_ranges(server: Server, cache: Path, tiny) -> None:
    server.ranges = False
    chunk = download.CHUNK
    server.cuts = [6 * chunk, 3 * chunk]
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content
    assert server.asked == [None, f"bytes={6 * chunk}-", f"bytes={3 * chunk}-"]
    assert files(cache) == [FILE]


def test_server_without_lengths(server: Server, tiny) -> None:
    server.sized = False
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content


def test_part_that_is_already_whole(server: Server, cache: Path, tiny) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / PART).write_bytes(tiny.archive)
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content
    assert len(server.asked) == 1


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_part_of_something_else(server: Server, cache: Path, tiny, size: int) -> None:
    (cache / "tiny").mkdir(parents=True)
    (cache / PART).write_bytes(b"x" * size)
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content
    assert server.asked == [f"bytes={size}-", None]
    assert files(cache) == [FILE]


def test_busy_server_is_asked_again(server: Server, tiny) -> None:
    server.statuses = [503, 429, 500]
    assert fetch("tiny", url=server.url).read_bytes() == tiny.content


def test_not_found_is_final(server: Server, cache: Path) -> None:
    server.statuses = [404] * 9
    with pytest.raises(DataError, match=r"found 404 .*guardband data import") as caught:
        fetch("tiny", url=server.url)
    assert "kept" not in str(caught.value)
    assert len(server.asked) == 1
    assert files(cache) == []


def test_senseless_answer_is_given_up(server: Server, cache: Path) -> None:
    server.statuses = [416] * 9
    with pytest.raises(DataError, match="416"):
        fetch("tiny", url=server.url)
    assert len(server.asked) == download.TRIES
    assert files(cache) == []


def test_nobody_answers(server: Server, cache: Path) -> None:
    with pytest.raises(DataError, match="Check the connection"):
        fetch("tiny", url="http://127.0.0.1:1/tiny-1.zip")
    assert files(cache) == []


@pytest.mark.parametrize("url", ["file:///etc/hostname", "tiny.zip", ""])
def test_only_the_web(cache: Path, tiny, url: str) -> None:
    with pytest.raises(DataError, match="begins with http"):
        fetch("tiny", url=url)
    assert files(cache) == []


def altered(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 255]) + content[at + 1 :]


@pytest.mark.parametrize(
    ("spoil", "found"),
    [
        (lambda tiny: altered(tiny.archive, 150_000), "damaged archive"),
        (lambda tiny: tiny.archive[:150_000], "damaged archive"),
        (lambda tiny: b"<html>gone</html>", "damaged archive"),
        (lambda tiny: b"", "damaged archive"),
        (lambda tiny: zipped(other=b"x"), "an archive with other"),
        (lambda tiny: zipped(), "an archive with nothing"),
        (lambda tiny: zipped(**{"tiny.dat": altered(tiny.content, 9)}), "300,000 bytes with SHA"),
        (lambda tiny: zipped(**{"tiny.dat": tiny.content[:7]}), "7 bytes with SHA"),
        (lambda tiny: zipped(**{"tiny.dat": bytes(9_000_000)}), "more than 300,000 bytes"),
    ],
)
def test_wrong_archive(server: Server, cache: Path, tiny, tmp_path, spoil, found: str) -> None:
    server.content = spoil(tiny)
    with pytest.raises(DataError, match=found):
        fetch("tiny", url=server.url)
    assert files(cache) == []

    copy = tmp_path / "copy.zip"
    copy.write_bytes(server.content)
    with pytest.raises(DataError, match=re.escape(str(copy))):
        import_file("tiny", copy)
    assert files(cache) == []


def test_any_altered_byte_of_an_archive_is_told(cache: Path, tiny, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zip"
    size = len(tiny.archive)
    for at in [*range(100), *range(size - 300, size)]:
        copy.write_bytes(altered(tiny.archive, at))
        try:
            assert import_file("tiny", copy).read_bytes() == tiny.content
        except DataError:
            assert files(cache) == [FILE] or files(cache) == []


def test_bar_is_drawn_on_a_terminal_only(server: Server, cache, capsys, monkeypatch) -> None:
    fetch("tiny", url=server.url)
    (cache / FILE).unlink()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("guardband.progress.MOMENT", -1.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    fetch("tiny", url=server.url, progress=False)
    (cache / FILE).unlink()
    assert capsys.readouterr() == ("", "")
    fetch("tiny", url=server.url)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Tiny" in err


def test_import_of_file_and_archive(cache: Path, tiny, tmp_path: Path) -> None:
    for name, content in (("mine.dat", tiny.content), ("mine.zip", tiny.archive)):
        given = tmp_path / name
        given.write_bytes(content)
        assert import_file("tiny", str(given)).read_bytes() == tiny.content
        assert files(cache) == [FILE]
        (cache / FILE).unlink()


def test_import_of_an_altered_file_keeps_the_good_one(cache: Path, tiny, tmp_path) -> None:
    given = tmp_path / "mine.dat"
    given.write_bytes(tiny.content)
    import_file("tiny", given)
    given.write_bytes(tiny.content[:-1])
    with pytest.raises(DataError, match=r"299,999 bytes .*expected the original tiny.dat"):
        import_file("tiny", given)
    assert (cache / FILE).read_bytes() == tiny.content
    assert files(cache) == [FILE]


def test_import_of_nothing(cache: Path, tiny, tmp_path: Path) -> None:
    for given in (tmp_path / "absent", tmp_path):
        with pytest.raises(DataError, match="Check the path"):
            import_file("tiny", given)
    assert files(cache) == []


def test_unwritable_cache(server: Server, cache: Path) -> None:
    cache.write_text("a file, not a folder")
    with pytest.raises(DataError, match="set GUARDBAND_DATA"):
        fetch("tiny", url=server.url)
    assert cache.read_text() == "a file, not a folder"


def test_wrong_name(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="Did you mean 'movielens'"):
        fetch("movielense")
    with pytest.raises(DataError, match="Did you mean 'lastfm'"):
        import_file("lastfn", tmp_path)
