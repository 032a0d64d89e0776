"""A live system with simulated users, to look at: `guardband demo`.

The coordinator is that of `guardband serve`; three agents, each in a process of its own, recommend
films of the embedded MovieLens problem.
"""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.demo.scenario import run_demo
else:
    __getattr__ = lazy_imports(__name__)

__all__ = ["run_demo"]
