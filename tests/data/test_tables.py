from pathlib import Path

import numpy as np
import pytest

from guardband.data import DataError, find, read_lastfm, read_movielens
from guardband.data.catalogue import CATALOGUE

HEADER = b"userID\tartistID\tweight\r\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def test_ratings(path: Path) -> None:
    path.write_bytes(b"3\t1\t5\t0\n1\t4\t1\t881250949\n")
    got = read_movielens(path)
    assert got.shape == (3, 4)
    np.testing.assert_array_equal(got.rows, [2, 0])
    np.testing.assert_array_equal(got.columns, [0, 3])
    np.testing.assert_array_equal(got.values, [5.0, 1.0])


@pytest.mark.parametrize(
    ("content", "line", "found", "expected"),
    [
        (b"1,2,3,4\n", 1, "1 in '1,2,3,4'", "4 columns separated by tabs"),
        (b"1\t2\t3\t4\n1 3 3 4\n", 2, "1 in '1 3 3 4'", "4 columns separated by tabs"),
        (b"1\t2\t3\n", 1, "3 in ", "user, movie, rating, time"),
        (b"1\t2\t3\t4\t5\n", 1, "5 in ", "4 columns"),
        (b"1\t2\t3\t4\n\n", 2, "1 in ''", "4 columns"),
        (b"user\tmovie\trating\ttime\n", 1, "user 'user'", "a whole number from 1"),
        (b"1\t2\t3\t4\n1\t3\tgood\t4\n", 2, "rating 'good'", "a whole number from 1 to 5"),
        (b"1\t2\t3.5\t4\n", 1, "rating '3.5'", "a whole number from 1 to 5"),
        (b"1\t2\tnan\t4\n", 1, "rating 'nan'", "a whole number from 1 to 5"),
        (b"1\t2\t0\t4\n", 1, "rating '0'", "a whole number from 1 to 5"),
        (b"1\t2\t6\t4\n", 1, "rating '6'", "a whole number from 1 to 5"),
        (b"1\t2\t-1\t4\n", 1, "rating '-1'", "a whole number from 1 to 5"),
        (b"1\t0\t3\t4\n", 1, "movie '0'", "a whole number from 1"),
        (b"1\t\t3\t4\n", 1, "movie ''", "a whole number from 1"),
        (b"1\t" + b"9" * 99 + b"\t3\t4\n", 1, "movie '9999", "a whole number from 1"),
        ("1\t²\t3\t4\n".encode(), 1, "movie '²'", "a whole number from 1"),
        (b"1\t2\t3\t4\n1\t3\t3\t8812", 2, "without a line end", "the file is cut short"),
        (b"1\t2\t3\t4\n2\t2\t3\t4\n1\t2\t5\t4\n", 3, "user 1 with movie 2 once more", "each pair"),
        (b"PK\x03\x04\xff\xfe\x00\n", 1, "1 in 'PK", "4 columns"),
    ],
)
def test_bad_ratings(path: Path, content: bytes, line: int, found: str, expected: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_movielens(path)
    assert caught.value.where == f"{path}, line {line}"
    assert found in caught.value.found
    assert expected in caught.value.expected
    assert "guardband data fetch movielens" in str(caught.value)


@pytest.mark.parametrize("read", [read_movielens, read_lastfm])
@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\r\n"])
def test_empty_file(path: Path, read, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match="found an empty file"):
        read(path)


@pytest.mark.parametrize("read", [read_movielens, read_lastfm])
def test_missing_file(path: Path, read) -> None:
    with pytest.raises(DataError, match="No such file"):
        read(path)


def test_listens(path: Path) -> None:
    # Artist 5 has one listener; without it user 9 has one artist left.
    rows = b"7\t3\t10\r\n7\t8  \t1\r\n4\t8\t    2\r\n4\t3\t2\r\n9\t5\t1\r\n9\t3\t6\r\n"
    path.write_bytes(HEADER + rows)
    got = read_lastfm(path, least=2)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, [[1, 1], [1, 1]])
    np.testing.assert_array_equal(read_lastfm(path, least=1), [[1, 0, 1], [1, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"2\t51\t13883\r\n", "line 1: found '2.*expected the header userID artistID weight"),
        (b"userID,artistID,weight\r\n", "line 1: found 'userID,artistID,weight'"),
        (b"userID\tartistID\r\n2\t51\r\n", "line 1: found"),
        (HEADER, "no line of data"),
        (HEADER + b"2\t51\r\n", "line 2: found 2 in"),
        (HEADER + b"2\t51\tmany\r\n", "line 2: found weight 'many'"),
        (HEADER + b"2\t51\t0\r\n", "line 2: found weight '0'"),
        (HEADER + b"2\t51\t1\r\n2\t51\t1\r\n", "line 3: found userID 2 with artistID 51 once more"),
        (HEADER + b"2\t51\t1\r\n2\t5", "line 3: found .*cut short"),
        (HEADER + b"2\t51\t1\r\n", "an empty matrix"),
    ],
)
def test_bad_listens(path: Path, content: bytes, found: str) -> None:
    path.write_bytes(content)
    with pytest.raises(DataError, match=found) as caught:
        read_lastfm(path)
    assert str(path) in caught.value.where
    assert "guardband data fetch lastfm" in str(caught.value)


@pytest.mark.skipif(find("movielens") is None, reason="needs `guardband data fetch movielens`")
def test_original_ratings() -> None:
    entry, path = CATALOGUE["movielens"], find("movielens")
    assert path is not None
    got = read_movielens(path)
    assert got.shape == entry.shape == (943, 1682)
    assert len(got.values) == entry.rows == 100_000
    assert set(np.unique(got.values)) == {1, 2, 3, 4, 5}


@pytest.mark.skipif(find("lastfm") is None, reason="needs `guardband data fetch lastfm`")
def test_original_listens() -> None:
    path = find("lastfm")
    assert path is not None
    got = read_lastfm(path)
    assert got.shape == CATALOGUE["lastfm"].shape == (741, 538)
    assert got.sum(axis=1).min() >= 30
    assert got.sum(axis=0).min() >= 1
    with path.open("rb") as file:
        assert sum(1 for _ in file) == CATALOGUE["lastfm"].rows + 1
