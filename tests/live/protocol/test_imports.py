"""A coordinator and a server run without kernels, tables and agents."""

from __future__ import annotations

import subprocess
import sys

import pytest

SPACE = "SpaceSettings(name='home', features=['a', 'b'], agents=2, algorithm='disc-ucb')"


@pytest.mark.parametrize(
    "package", ["guardband.live.coordinator.coordinator", "guardband.live.server"]
)
def test_a_coordinator_loads_no_kernels_and_no_agents(package: str) -> None:
    code = (
        f"import sys, {package}\n"
        "from guardband.live.protocol.space import SpaceSettings\n"
        f"space = {SPACE}\n"
        "assert space.penalty == space.max_weight == 1.0\n"
        "heavy = {name for name in sys.modules if name.split('.')[0] in ('numba', 'pandas')}\n"
        "agents = {name for name in sys.modules if name.startswith('guardband.live.client')}\n"
        "agents |= {name for name in sys.modules if name.startswith('guardband.agent')}\n"
        "print(sorted(heavy | agents))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
