"""Where work runs: this machine's cores, a Ray cluster; and a cache for finished results."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.engines.base import Advance, ComputeEngine, OnProgress, StoppedError, Work
    from guardband.engines.cache import CacheEntry, ResultCache
    from guardband.engines.cluster import RayEngine
    from guardband.engines.local import LocalEngine
    from guardband.engines.named import ENGINES, open_engine
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "ENGINES",
    "Advance",
    "CacheEntry",
    "ComputeEngine",
    "LocalEngine",
    "OnProgress",
    "RayEngine",
    "ResultCache",
    "StoppedError",
    "Work",
    "open_engine",
]
