"""What all tests share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings

import guardband as gb
from guardband.kernels._jit import Kernel

settings.register_profile("guardband", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("guardband")


@pytest.fixture(autouse=True)
def _compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test machine code from the first call on; what comes before is in `test_start.py`."""
    for name in ("at_once", "when_ready"):
        monkeypatch.setattr(Kernel, name, Kernel.__call__)


@pytest.fixture
def live_system() -> None:
    """Skip what needs live agents where there are none: on Windows."""
    pytest.importorskip("fcntl", reason="live agents need Linux or macOS")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2026)


@pytest.fixture
def problem() -> gb.Tabular:
    """Two agents, four contexts, six actions, three features; rewards in [0, 1]."""
    rng = np.random.default_rng(11)
    phi = rng.uniform(0.05, 0.55, (4, 6, 3))
    psi = phi + rng.normal(0, 0.01, phi.shape)
    return gb.Tabular(
        phi, psi, [0.5, 0.6, 0.4], tasks=[[0, 1, 2], [0, 2]], baseline=3, reward_std=0.1
    )
