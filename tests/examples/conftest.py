"""Examples are programs in folders of their own: tests import their modules from there."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], ModuleType]]:
    """Import a module of an example by the names of its folder and its file."""
    before = set(sys.modules)

    def load(folder: str, module: str) -> ModuleType:
        monkeypatch.syspath_prepend(EXAMPLES / folder)
        return import_module(module)

    yield load
    for name in set(sys.modules) - before:  # another example may have a module of the same name
        if str(EXAMPLES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[], object]], list[str]]:
    """Run a program as in a terminal of 80 columns; return the lines that it prints."""

    def run(program: Callable[[], object]) -> list[str]:
        monkeypatch.setenv("COLUMNS", "80")
        capsys.readouterr()
        program()
        return [line.rstrip() for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.fixture
def shown() -> Callable[[str], list[str]]:
    """Return the lines of the first text block in an example's README."""

    def read(folder: str) -> list[str]:
        text = (EXAMPLES / folder / "README.md").read_text()
        return text.split("```text\n")[1].split("```")[0].splitlines()

    return read
