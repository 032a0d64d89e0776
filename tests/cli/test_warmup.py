"""`guardband warmup`: it compiles what agents in the given roles call, and says where it is."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from guardband.agent.warmup import ROLES
from guardband.cli.app import app
from guardband.cli.warmup import Role
from guardband.kernels import _compile
from guardband.kernels._jit import _KERNELS, Kernel
from guardband.kernels.serve import GUARDED, TOLERANT, VALUED
from guardband.kernels.start import machine_code

RUN = CliRunner()


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """Return what is compiled, without compiling it."""
    found: list[Kernel] = []

    def load(kernel: Kernel, _: Any) -> None:
        found.append(kernel)

    monkeypatch.undo()  # `at_once` as it is
    for each in _KERNELS.values():
        monkeypatch.setattr(each, "code", None)  # what other tests have loaded
    monkeypatch.setattr(machine_code, "load", load)
    return found


def test_roles_are_compiled(loaded: list[Kernel]) -> None:
    result = RUN.invoke(app, ["warmup", "guard-ucb"], catch_exceptions=False)
    assert set(GUARDED) <= set(loaded)
    assert not set(loaded) & {*VALUED, *TOLERANT}
    assert f"{len(loaded)} kernels are compiled, in {_compile.cache_folder()}." in result.output


def test_all_roles_are_compiled_by_default_and_none_twice(loaded: list[Kernel]) -> None:
    assert [role.value for role in Role] == list(ROLES)
    result = RUN.invoke(app, ["warmup", "--quiet"], catch_exceptions=False)
    assert {*GUARDED, VALUED.serve, *TOLERANT} <= set(loaded)
    assert len(set(loaded)) == len(loaded)
    assert result.output == ""


def test_a_folder_that_cannot_be_written_is_refused(
    loaded: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compile, "is_shared", lambda: False)
    result = RUN.invoke(app, ["warmup"])
    assert isinstance(result.exception, OSError)
    assert "NUMBA_CACHE_DIR" in str(result.exception)
    assert loaded == []
