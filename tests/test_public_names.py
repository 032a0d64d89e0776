"""What the package offers by name."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import guardband as gb

PROMISED = {
    "Agent",
    "DisLinUcb",
    "DiscUcb",
    "DiscUcbUnknown",
    "Discrete",
    "Fleet",
    "Gaussian",
    "Replay",
    "Samples",
    "Tabular",
    "expected_features",
    "simulate",
}
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(gb.__path__, "guardband.")
    if not found.name.endswith("__main__")  # importing it would run the command
)


def test_all_is_what_is_public() -> None:
    public = {
        name
        for name, value in vars(gb).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert set(gb.__all__) == public
    assert public >= PROMISED
    assert len(gb.__all__) == len(public), "a name is listed twice"


@pytest.mark.parametrize("name", gb.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(gb, name)
    assert thing.__doc__
    assert thing.__doc__.strip()
    if not inspect.isclass(thing):
        return
    for member, value in vars(thing).items():
        if member.startswith("_") or not (inspect.isroutine(value) or isinstance(value, property)):
            continue
        assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


def test_there_are_modules_in_every_room() -> None:
    rooms = {name.split(".")[1] for name in MODULES}
    assert rooms >= {"algorithms", "cli", "core", "data", "fleet", "problems", "report", "sim"}


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_offers(name: str) -> None:
    module = import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    offered = getattr(module, "__all__", None)
    if offered is None:
        tree = ast.parse(Path(str(module.__file__)).read_text())
        assert hasattr(module, "__path__"), f"{name} has no __all__"
        assert len(tree.body) == 1, f"{name} holds more than its docstring, but has no __all__"
        return
    assert len(set(offered)) == len(offered), f"{name}.__all__ names something twice"
    for word in offered:
        assert hasattr(module, word), f"{name}.__all__ names {word}"
