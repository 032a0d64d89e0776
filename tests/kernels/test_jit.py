"""Machine code belongs to the source it was made from."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba.core.errors import NumbaError

import guardband.kernels._jit as jit

CORE = Path(jit.__file__).parent


def test_a_change_anywhere_in_the_room_makes_a_new_cache(tmp_path: Path) -> None:
    """A kernel that inlines another file's function must not survive that file's edit."""
    package = tmp_path / "guardband"
    shutil.copytree(CORE, package / "kernels")
    (package / "__init__.py").touch()
    call = (
        "import numpy as np; from guardband.kernels.ridge import radius; "
        "from guardband.kernels.state import new_state; from guardband.kernels.types import Terms; "
        "print(radius(new_state(1, 4.0).estimate, Terms(0, 4.0, 1.0, 9.0, sigma=1.0)))"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run() -> str:
        done = subprocess.run(
            [sys.executable, "-c", call], env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    assert run() == "5.0"
    types = package / "kernels" / "types.py"
    types.write_text(types.read_text() + "\n# an edit that no kernel's own file sees\n")
    assert run() == "5.0"
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_kernels_cannot_allocate() -> None:
    @jit.kernel
    def grows(n):
        return np.zeros(n)

    with pytest.raises(NumbaError):
        grows(3)


def test_kernels_of_one_making_keep_apart_whoever_compiled_them(tmp_path: Path) -> None:
    """Machine code of two processes is linked by its name, so no two kernels may share one."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(*names: str) -> str:
        words = [sys.executable, str(Path(__file__).with_name("twins.py")), *names]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert (run("one"), run("ten")) == ("11.0", "110.0")
    assert (run("one", "ten"), run("ten", "one")) == ("11.0 110.0", "110.0 11.0")
