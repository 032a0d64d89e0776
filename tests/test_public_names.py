"""What the package offers by name."""

from __future__ import annotations

import ast
import doctest
import inspect
import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import guardband as gb

PROMISED = {
    "Agent",
    "Budget",
    "Decision",
    "DisLinUCB",
    "DiscUCB",
    "DiscUCBUnknown",
    "Discrete",
    "Features",
    "Fleet",
    "Health",
    "Gaussian",
    "GuardUCB",
    "Hashed",
    "Learned",
    "LiveAgent",
    "Outlook",
    "Replay",
    "Results",
    "Samples",
    "SpaceSettings",
    "Study",
    "Tabular",
    "Uplift",
    "connect",
    "difference_covariance",
    "expected_features",
    "feature_support",
    "problem",
    "simulate",
    "study",
}
ERRORS = {
    "BoundWarning",
    "BudgetSpentError",
    "DataError",
    "GuardbandError",
    "InputError",
    "InvalidTypeError",
    "InvalidValueError",
    "JournalError",
    "OtherRewardError",
    "OtherSettingsError",
    "OtherVersionError",
    "PolicyError",
    "Refused",
    "StuckWarning",
    "UnknownDecisionError",
    "UnknownSeriesError",
    "UnknownSpaceError",
    "UnknownTaskError",
    "Unreachable",
}
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(gb.__path__, "guardband.")
    if not found.name.endswith("__main__")  # importing it would run the command
)


def test_all_is_what_is_public() -> None:
    """Names are loaded when they are asked for; what type checkers read is the same list."""
    tree = ast.parse(Path(str(gb.__file__)).read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {
        alias.name
        for node in typed.body
        if isinstance(node, ast.ImportFrom) and node.module != "guardband"
        for alias in node.names
    }
    assert set(gb.__all__) == imported
    assert imported == PROMISED | ERRORS
    assert len(gb.__all__) == len(imported), "a name is listed twice"
    for name in gb.__all__:
        assert getattr(gb, name) is getattr(gb, name)
    public = {
        name
        for name, value in vars(gb).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert public - {"TYPE_CHECKING"} == imported
    assert set(dir(gb)) >= {*gb.__all__, "envs", "theory", "__version__"}


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert gb.__version__ == project["version"]


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Flete'"):
        _ = gb.Flete


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


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_every_public_name_has_an_example(name: str) -> None:
    """Errors and warnings aside; tests/test_docs.py runs them."""
    thing = getattr(gb, name)
    (found,) = doctest.DocTestFinder(recurse=False).find(thing, name)
    assert found.examples, f"{name} has no example"
    shown = [example for example in found.examples if example.want]
    assert shown, f"the example of {name} prints nothing"


def test_there_are_modules_in_every_package() -> None:
    packages = {name.split(".")[1] for name in MODULES}
    assert packages >= {
        "algorithms",
        "agent",
        "cli",
        "kernels",
        "data",
        "problems",
        "report",
        "sim",
    }


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
