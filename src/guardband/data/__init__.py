"""MovieLens-100K and HetRec 2011 Last.fm: the factors that ship, and the original files.

`factors` works offline on a fresh machine. The other names serve those who want the original
files: to get them, to read them, and to make the factors again.
"""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.data.cache import find, status
    from guardband.data.catalogue import NAMES, DataError
    from guardband.data.download import fetch, import_file
    from guardband.data.shipped import Factors, build, factors
    from guardband.data.tables import read_lastfm, read_movielens
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "NAMES",
    "DataError",
    "Factors",
    "build",
    "factors",
    "fetch",
    "find",
    "import_file",
    "read_lastfm",
    "read_movielens",
    "status",
]
