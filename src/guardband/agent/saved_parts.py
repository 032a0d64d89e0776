"""Arrays of a file that anybody may have written: nothing larger than the file is made of it."""

from __future__ import annotations

import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from guardband.errors import InvalidValueError

__all__ = ["read_parts"]

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_parts(file: BinaryIO, most: int | None = None) -> dict[str, Any]:
    """Return the arrays of an .npz; whatever is damaged raises, before memory is taken.

    Parameters
    ----------
    file
        Open, and at its beginning.
    most
        How many bytes all arrays may have; None: as many as the file, which is then not compressed.
    """
    limit = os.fstat(file.fileno()).st_size if most is None else most
    with zipfile.ZipFile(file) as archive:
        parts = archive.infolist()
        if sum(part.file_size for part in parts) > limit:
            raise InvalidValueError(f"its parts are said to have more than {limit:,} bytes")
        if len({part.filename for part in parts}) < len(parts):
            raise InvalidValueError("two of its parts have one name")
        return {part.filename.removesuffix(".npy"): _read(archive, part) for part in parts}


def _read(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> Any:
    """Return one array, if it has as many bytes as its header says."""
    with archive.open(part) as file:
        # Asked for more, it would unpack more than it is said to have.
        header = HEADERS[npy.read_magic(file)]
        shape, by_columns, dtype = header(file)
        left = part.file_size - file.tell()
        if dtype.hasobject or math.prod(shape) * dtype.itemsize != left:
            raise InvalidValueError(f"{part.filename} has another size than it says")
        raw = file.read(left)  # at its end, its checksum is compared
    return np.frombuffer(raw, dtype).reshape(shape, order="F" if by_columns else "C")
