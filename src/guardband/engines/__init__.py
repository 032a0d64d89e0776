"""Where work runs: this machine's cores, a Ray cluster; and a shelf for finished results."""

from guardband.engines.base import Engine, Step, StoppedError, Tick, Work
from guardband.engines.cluster import RayEngine
from guardband.engines.local import LocalEngine
from guardband.engines.shelf import Parcel, Shelf

__all__ = [
    "Engine",
    "LocalEngine",
    "Parcel",
    "RayEngine",
    "Shelf",
    "Step",
    "StoppedError",
    "Tick",
    "Work",
]
