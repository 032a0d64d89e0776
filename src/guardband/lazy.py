"""Packages whose names are imported when they are first used.

Numba and pandas take seconds to import, and `guardband --help`, a coordinator or a reader of
settings need neither. A package with many names lists them as usual, but for type checkers only:

    if TYPE_CHECKING:
        from guardband.sim.results import Results
    else:
        __getattr__ = lazy_imports(__name__)
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["lazy_imports"]


def lazy_imports(package: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: it imports what the package's source imports.

    Parameters
    ----------
    package
        The package's name. Its imports are written as `from module import name`.
    """

    @cache
    def homes() -> dict[str, str]:
        spec = find_spec(package)
        assert spec is not None
        source = spec.loader.get_source(package)  # type: ignore[union-attr]
        return {
            alias.name: node.module or ""
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def load(name: str) -> Any:
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes()[name]), name)
        setattr(sys.modules[package], name, value)  # looked up once
        return value

    return load
