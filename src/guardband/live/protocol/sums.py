"""The sums that streams upload and epochs add up: weighted second moments of [psi; y].

With a window sums forget: rounds are cut into half windows, and of two sums that are added, only
what is of the newest half of both, or of the one before it, counts. What is of the newest half is
kept apart as well, and takes the place of all when the next begins: nothing is ever subtracted, and
sums can be added in any grouping.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from guardband.errors import GuardbandError
from guardband.kernels.types import Floats, Ints, Statistic
from guardband.live.protocol.types import Triangle, Whole, as_object, packed_size

__all__ = [
    "MAGIC",
    "DamagedSumsError",
    "Recent",
    "Sums",
    "add_sums",
    "bytes_of",
    "difference",
    "empty_recent",
    "empty_sums",
    "forget",
    "is_sound",
    "matrix_of",
    "pack_sums",
    "packed_size",
    "statistic_of",
    "sums_of",
    "sums_without",
    "unpack_sums",
    "upper_places",
]

# Stored sums begin with a magic word, whose last byte is the format, and the CRC-32 of the rest.
# Format 1 had neither: its first bytes are the low ones of n as a float64, zero below 2^20.
# Format 3 has one more number, `by_variance`, and format 4 `reused` after it; sums in which the
# last of them are 0 are written without, so that equal sums have equal bytes, whichever version
# wrote them. Format 5, of sums that forget, has five numbers of the newest half window and two
# matrices.
MAGIC = b"GBS"
FORMAT_2, FORMAT_3, FORMAT_4 = MAGIC + b"\x02", MAGIC + b"\x03", MAGIC + b"\x04"
FORMAT_5 = MAGIC + b"\x05"
# How many numbers come before the matrix.
FORMATS = {FORMAT_2: 3, FORMAT_3: 4, FORMAT_4: 5, FORMAT_5: 10}
# By whether there are numbers in `by_variance` and in `reused`.
FORMAT_OF = {
    (False, False): FORMAT_2,
    (True, False): FORMAT_3,
    (False, True): FORMAT_4,
    (True, True): FORMAT_4,
}
HEAD = struct.Struct("<4sI")
LENGTH = struct.Struct("<Q")


class DamagedSumsError(GuardbandError, ValueError):
    """Stored bytes are not the sums that were written."""


@as_object
class Recent(NamedTuple):
    """What sums that forget hold of their newest half window."""

    half: Whole  # its number, from 1 on
    kept: Whole  # how many observations count at all: of this half, and of the one before
    n: Whole  # and how many are of this half
    gram: Triangle
    surprise: float
    weight: float


@as_object
class Sums(NamedTuple):
    """The sums over the first n observations of a stream, or over a manifest of streams.

    W, U and the sum of w y^2 travel in one matrix: they cannot come apart, and one test of
    positive semi-definiteness checks them together.
    """

    n: Whole  # with a window, those that no longer count are among them
    gram: Triangle  # ((d + 1)(d + 2) / 2,) upper triangle, by rows, of sum w z z', z = [psi; y]
    surprise: float  # H = sum w (yhat^2 - 2 y yhat), yhat = psi'theta-hat before the reward
    weight: float  # sum w
    by_variance: Whole = 0  # how many have weights by variance, for which log det is no radius
    reused: Whole = 0  # how many are rows of logs that had been looked at
    recent: Recent | None = None  # with a window; None: nothing is forgotten

    @property
    def half(self) -> int:
        """The number of the newest half window; 0: nothing is forgotten."""
        return 0 if self.recent is None else self.recent.half

    @property
    def kept(self) -> int:
        """How many observations count."""
        return self.n if self.recent is None else self.recent.kept

    @property
    def counting(self) -> Sums:
        """What counts, as sums that do not forget."""
        return self if self.recent is None else self._replace(n=self.kept, recent=None)

    @property
    def newest(self) -> Sums:
        """What is of the newest half window, as sums that do not forget."""
        assert self.recent is not None
        _, _, n, gram, surprise, weight = self.recent
        return Sums(n, gram, surprise, weight, n if self.by_variance else 0)

    def as_bytes(self) -> bytes:
        """Return the bytes that journals and stores keep: magic, CRC-32, and numbers.

        The numbers are n, H, the sum of weights, `by_variance` and `reused` up to the last that
        is not 0, and the matrix, as little-endian float64.
        """
        rest = (self.by_variance, self.reused)
        head = [self.n, self.surprise, self.weight, *rest]
        magic, matrices = FORMAT_OF[bool(rest[0]), bool(rest[1])], [self.gram]
        if self.recent is not None:
            half, kept, n, gram, surprise, weight = self.recent
            magic, matrices = FORMAT_5, [self.gram, gram]
            head += [half, kept, n, surprise, weight]
        raw = np.array(head[: FORMATS[magic]], "<f8").tobytes()
        for each in matrices:
            raw += each.astype("<f8").tobytes()
        return HEAD.pack(magic, zlib.crc32(raw)) + raw

    @classmethod
    def from_bytes(cls, raw: bytes) -> Sums:
        """Return what `as_bytes` wrote, now or in format 1; DamagedSumsError elsewhere."""
        body, first = raw, FORMATS.get(raw[:4], 3)
        if raw[:4] in FORMATS:
            body = raw[HEAD.size :]
            if len(raw) < HEAD.size or HEAD.unpack_from(raw)[1] != zlib.crc32(body):
                raise DamagedSumsError(
                    f"{len(raw)} bytes of sums are damaged: their checksum differs."
                )
        parts = 2 if raw[:4] == FORMAT_5 else 1
        if (len(body) // 8 - first) % parts or len(body) % 8:
            raise DamagedSumsError(f"{len(raw)} bytes are not sums.")
        if _dim_of((len(body) // 8 - first) // parts) is None:
            raise DamagedSumsError(f"{len(raw)} bytes are not sums.")
        numbers = np.frombuffer(body, "<f8").astype(np.float64)
        (n, surprise, weight, *rest), matrices = numbers[:first].tolist(), numbers[first:]
        recent = None
        if parts == 2:
            half, kept, some, fit, heavy = rest[2:]
            gram = matrices[matrices.size // 2 :].copy()
            recent = Recent(int(half), int(kept), int(some), gram, fit, heavy)
        gram = matrices[: matrices.size // parts].copy()
        by_variance, reused = (*map(int, rest[:2]), 0, 0)[:2]
        return cls(int(n), gram, surprise, weight, by_variance, reused, recent)

    @property
    def sha256(self) -> str:
        """The digest of the numbers, by which two copies can be compared."""
        return hashlib.sha256(self.as_bytes()[HEAD.size :]).hexdigest()

    @property
    def dim(self) -> int:
        """The number of features, d."""
        dim = _dim_of(self.gram.size)
        assert dim is not None
        return dim


def is_sound(sums: Sums, ridge: float) -> bool:
    """Tell whether one can compute with sums: finite, and V = ridge I + W well above 0."""
    numbers = np.array([sums.surprise, sums.weight])
    if not (np.isfinite(sums.gram).all() and np.isfinite(numbers).all()):
        return False
    least = np.linalg.eigvalsh(matrix_of(sums)[:-1, :-1])[0]
    return bool(least >= -0.5 * ridge)


def empty_sums(dim: int) -> Sums:
    """Return the sums over no observations."""
    return Sums(0, np.zeros(packed_size(dim)), 0.0, 0.0)


def empty_recent(dim: int, half: int) -> Recent:
    """Return a half window in which nothing was observed yet, and before which nothing counts."""
    return Recent(half, 0, 0, np.zeros(packed_size(dim)), 0.0, 0.0)


def forget(sums: Sums, half: int) -> Sums:
    """Return what counts of sums in a half window; those that do not forget stay as they are."""
    recent = sums.recent
    if recent is None or recent.half >= half:
        return sums
    nothing = empty_recent(sums.dim, half)
    if recent.half + 1 < half:
        return Sums(sums.n, nothing.gram, 0.0, 0.0, recent=nothing)
    return sums.newest._replace(n=sums.n, recent=nothing._replace(kept=recent.n))


def matrix_of(sums: Sums) -> Floats:
    """Return the whole (d + 1, d + 1) matrix."""
    dim = sums.dim
    matrix = np.zeros((dim + 1, dim + 1))
    upper = upper_places(dim)
    matrix[upper] = sums.gram
    matrix.T[upper] = sums.gram
    return matrix


@lru_cache(maxsize=16)
def upper_places(dim: int) -> tuple[Ints, Ints]:
    """Return the rows and columns of the upper triangle of a (d + 1, d + 1) matrix."""
    rows, columns = np.triu_indices(dim + 1)
    return rows, columns


def sums_of(statistic: Statistic) -> Sums:
    """Return the sums that a kernel's statistic holds."""
    numbers = _numbers_of(statistic, FORMAT_4)
    n, surprise, weight, by_variance, reused = numbers[:5].tolist()
    return Sums(int(n), numbers[5:], surprise, weight, int(by_variance), int(reused))


def bytes_of(statistic: Statistic) -> bytes:
    """Return `sums_of(statistic).as_bytes()`, in less time: agents write it with every reward."""
    magic = FORMAT_OF[bool(statistic.scalars[4]), bool(statistic.scalars[5])]
    raw = _numbers_of(statistic, magic).astype("<f8", copy=False).tobytes()
    return HEAD.pack(magic, zlib.crc32(raw)) + raw


def _numbers_of(statistic: Statistic, magic: bytes) -> Floats:
    """Return a statistic's numbers in the order of a format."""
    gram, moment, scalars = statistic
    numbers = np.frombuffer(gram.tobytes() + moment.tobytes() + scalars.tobytes())
    found: Floats = numbers[_order(moment.size, magic)]
    return found


@lru_cache(maxsize=16)
def _order(dim: int, magic: bytes) -> Ints:
    """Return which number of a statistic, counted through its parts, comes where in a format."""
    gram, moment = np.arange(dim * dim).reshape(dim, dim), dim * dim + np.arange(dim)
    n, squares, surprise, weight, by_variance, reused = dim * dim + dim + np.arange(6)
    matrix = np.block([[gram, moment[:, None]], [moment, squares]])
    head = [n, surprise, weight, by_variance, reused][: FORMATS[magic]]
    return np.append(head, matrix[upper_places(dim)])


def statistic_of(sums: Sums) -> Statistic:
    """Return the kernels' statistic with what counts of sums."""
    matrix = matrix_of(sums)
    d = len(matrix) - 1
    n = sums.n if sums.recent is None else sums.recent.kept
    first = [float(n), matrix[d, d], sums.surprise, sums.weight]
    scalars = np.array([*first, float(sums.by_variance), float(sums.reused)])
    return Statistic(matrix[:d, :d].copy(), matrix[:d, d].copy(), scalars)


def add_sums(dim: int, parts: Iterable[Sums]) -> Sums:
    """Return the sum, added up in the order given: the same order gives the same bytes.

    Sums that forget are brought to the newest half window of all.
    """
    total = empty_sums(dim)
    for each in parts:
        one, two = total, each
        recent = one.recent or two.recent
        if one.recent is not None and two.recent is not None:
            half = max(one.half, two.half)
            one, two = forget(one, half), forget(two, half)
            recent = _both(one.recent, two.recent)
        total = Sums(
            one.n + two.n,
            one.gram + two.gram,
            one.surprise + two.surprise,
            one.weight + two.weight,
            one.by_variance + two.by_variance,
            one.reused + two.reused,
            recent,
        )
    return total


def _both(one: Recent | None, two: Recent | None) -> Recent:
    """Return what two sums hold of one half window, together."""
    assert one is not None
    assert two is not None
    return Recent(
        one.half,
        one.kept + two.kept,
        one.n + two.n,
        one.gram + two.gram,
        one.surprise + two.surprise,
        one.weight + two.weight,
    )


def sums_without(dim: int, parts: Sequence[Sums]) -> list[Sums]:
    """Return the sums of all parts but one, for every part; none is a difference of sums.

    A part may be so large that nothing is left of the others where it is taken away again.
    """
    before, after = [empty_sums(dim)], [empty_sums(dim)]
    for each in parts[:-1]:
        before.append(add_sums(dim, (before[-1], each)))
    for each in reversed(parts[1:]):
        after.append(add_sums(dim, (each, after[-1])))
    return [add_sums(dim, pair) for pair in zip(before, reversed(after), strict=True)][: len(parts)]


def pack_sums(parts: Sequence[Sums]) -> bytes | None:
    """Return several sums as journals keep them; None: there are none."""
    pieces = [each.as_bytes() for each in parts]
    return b"".join(LENGTH.pack(len(each)) + each for each in pieces) or None


def unpack_sums(raw: bytes | None) -> tuple[Sums, ...]:
    """Return what `pack_sums` wrote; DamagedSumsError elsewhere."""
    found, at, raw = [], 0, raw or b""
    while at < len(raw):
        if len(raw) < at + LENGTH.size:
            raise DamagedSumsError(f"{len(raw)} bytes are not several sums.")
        end = at + LENGTH.size + LENGTH.unpack_from(raw, at)[0]
        found.append(Sums.from_bytes(raw[at + LENGTH.size : end]))
        at = end
    return tuple(found)


def difference(later: Sums, earlier: Sums) -> Sums:
    """Return what counts of what was counted between two checkpoints of one stream."""
    if later.recent is not None:
        earlier, later = forget(earlier, later.half).counting, later.counting
    return Sums(
        later.n - earlier.n,
        later.gram - earlier.gram,
        later.surprise - earlier.surprise,
        later.weight - earlier.weight,
        later.by_variance - earlier.by_variance,
        later.reused - earlier.reused,
    )


@lru_cache(maxsize=16)
def _dim_of(size: int) -> int | None:
    """Return d, if (d + 1)(d + 2) / 2 numbers are `size`."""
    dim = (math.isqrt(8 * size + 1) - 3) // 2 if size > 0 else 0
    return dim if dim >= 1 and (dim + 1) * (dim + 2) // 2 == size else None
