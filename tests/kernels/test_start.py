"""Kernels before they are compiled: the same numbers, and machine code from elsewhere."""

from __future__ import annotations

import ast
import logging
import math
import pickle
import struct
import sys
import threading
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from kernels.children import child

from guardband.kernels import _jit as jit
from guardband.kernels.ridge import absorb
from guardband.kernels.start import background, machine_code, plain
from guardband.kernels.start.helper import Helper, HelperError
from guardband.kernels.start.signature import example, signature
from guardband.kernels.state import new_state
from guardband.kernels.sync import clear_statistic

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0**-1074, -(2.0**-1030), 1e308, 710.0, -746.0, math.inf]
SPECIAL += [-math.inf, math.nan]


@jit.kernel
def formulas(x, y, n, out):
    out[0] = math.sqrt(x)
    out[1] = math.exp(x)
    out[2] = math.log(x)
    out[3] = math.log1p(x)
    out[4] = x / y
    out[5] = 1.0 / (x - x)
    out[6] = x * y + x  # rounded twice, or once if the compiler fuses it
    out[7] = max(0.0, x) / min(0.0, y)
    out[8] = 1.0 / n
    total = 0.0
    for i in range(out.size):
        total += out[i] * y
    return total, n, x > y, x if x > 0.0 else 0.0


def bits(value: Any) -> bytes:
    """Return a number's bits; all that is not a number is alike."""
    return b"nan" if math.isnan(value) else struct.pack("d", value)


def test_formulas_have_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal(3000) * 10.0 ** rng.uniform(-12, 3, 3000)
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL] + list(drawn.reshape(-1, 2).tolist())
    for x, y in pairs:
        one, other = np.zeros(9), np.zeros(9)
        made = plain.run(formulas, (x, y, 0, one))
        told = formulas(x, y, 0, other)
        assert list(map(bits, one)) == list(map(bits, other)), (x, y)
        assert [*map(type, made)] == [*map(type, told)] == [float, int, bool, float]
        assert list(map(bits, made)) == list(map(bits, told)), (x, y)


def test_no_kernel_has_powers() -> None:
    """The compiler multiplies where NumPy calls pow, which rounds otherwise."""
    for path in sorted(Path(jit.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            assert not isinstance(getattr(node, "op", None), ast.Pow), (path.name, node.lineno)


def test_a_plain_kernel_calls_plain_kernels() -> None:
    assert (
        absorb.plain.__globals__["rank_one"]
        is sys.modules["guardband.kernels.linalg"].rank_one.plain
    )
    assert isinstance(absorb.plain.__code__.co_consts, tuple)
    assert not any(type(each) is float for each in absorb.plain.__code__.co_consts)


def test_signatures_are_those_of_the_compiler() -> None:
    square = np.zeros((4, 4))
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    state = new_state(3, 1.0)
    given = (1, 1.0, True, square, square.T, square[::2, ::2], fixed, (1, (2.0, square)), state)
    kinds = signature(given)
    assert [numba.typeof(each) for each in given] == [numba.typeof(each) for each in example(kinds)]
    assert pickle.loads(pickle.dumps(kinds)) == kinds
    assert hash(kinds)


def test_kernels_are_found_again_in_another_process() -> None:
    from guardband.kernels.serve import GUARDED, TOLERANT  # noqa: PLC0415

    for kernel in (clear_statistic, *GUARDED, *TOLERANT):
        assert pickle.loads(pickle.dumps(kernel)) is kernel


CHILD = """
import sys, time
import numpy as np
from guardband.kernels.linalg import dot
first = dot.at_once(np.ones(3), np.arange(3.0))
assert "numba" not in sys.modules or not dot.ready
began = time.monotonic()
while not dot.ready and time.monotonic() - began < 300.0:
    time.sleep(0.01)
again = dot.at_once(np.ones(3), np.arange(3.0))
other = dot.at_once(np.ones((3, 2))[:, 0], np.arange(3.0))  # another type: plain again
print(first, again, other, type(again).__name__, dot.ready)
"""


def test_a_helper_compiles_and_the_agent_goes_on(tmp_path: Path) -> None:
    assert child(tmp_path, CHILD).stdout.split() == ["3.0", "3.0", "3.0", "float", "True"]
    folders = list((tmp_path / "cache").iterdir())
    assert len(folders) == 1
    assert list(folders[0].glob("*.kept"))
    before = {path: path.stat().st_mtime_ns for path in folders[0].rglob("*.nb?")}
    assert before
    silent = f"from guardband.kernels.start import helper; helper.subprocess = None\n{CHILD}"
    assert child(tmp_path, silent).stdout.split()[-1] == "True"  # it is kept: nobody is asked


def test_without_a_helper_it_is_compiled_here_and_said(tmp_path: Path) -> None:
    embedded = "import sys; sys.executable = '/usr/bin/uwsgi'\n" + CHILD
    done = child(tmp_path, embedded)
    assert done.stdout.split()[-1] == "True"
    assert "compiled in this process" in done.stderr
    assert "uwsgi" in done.stderr
    assert "guardband warmup" in done.stderr


WAITING = """
import asyncio, logging, subprocess, sys
import numba.core.event as event
import numpy as np
from guardband.kernels import _compile
from guardband.kernels.linalg import dot
from guardband.kernels.start import helper

async def wait():
    ticks, given = 0, (np.ones(3), np.arange(3.0))
    waiting = asyncio.create_task(asyncio.to_thread(dot.when_ready, *given))
    while not waiting.done():
        await asyncio.sleep(0.005)
        ticks += 1
    return await waiting, ticks >= 10

with event.install_recorder("numba:compile") as compiled:
    print(*asyncio.run(wait()), len(compiled.buffer) > 0, dot.ready)
"""
DIES = """
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
helper._start = lambda: subprocess.Popen([sys.executable, "-c", "pass"], **pipes)
"""


def test_who_waits_lets_other_threads_go_on_and_compiles_nothing(tmp_path: Path) -> None:
    assert child(tmp_path, WAITING).stdout.split() == ["3.0", "True", "False", "True"]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ("sys.executable = '/usr/bin/uwsgi'", "uwsgi"),
        ("sys.frozen = True", "is not Python"),
        ("_compile._shared_folder = lambda: None", "no folder"),
        (DIES, "the helper failed"),
    ],
    ids=["embedded", "frozen", "read-only", "dies"],
)
def test_who_waits_without_a_helper_compiles_here(trouble: str, said: str, tmp_path: Path) -> None:
    at = WAITING.index("\nasync def")
    done = child(tmp_path, WAITING[:at] + trouble + WAITING[at:])
    found, _, compiled, ready = done.stdout.split()
    assert (found, compiled, ready) == ("3.0", "True", "True")
    assert "compiled in this process" in done.stderr
    assert said in done.stderr


def test_who_waits_where_nothing_can_be_compiled_runs_it_as_it_is_written(tmp_path: Path) -> None:
    done = child(tmp_path, WAITING, NUMBA_DISABLE_JIT="1")
    found, _, compiled, ready = done.stdout.split()
    assert (found, compiled, ready) == ("3.0", "False", "False")
    assert "stays slow" in done.stderr


def test_what_is_waited_for_comes_first_and_nobody_waits_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loaded, busy, go_on = [], threading.Event(), threading.Event()

    def load(kernel: jit.Kernel, _: Any) -> None:
        loaded.append(kernel)
        busy.set()
        go_on.wait()

    monkeypatch.setattr(machine_code, "is_kept", lambda *_: True)
    monkeypatch.setattr(machine_code, "load", load)
    here, kinds = background.Background(), signature((3,))
    here.add(formulas, kinds)
    busy.wait()
    here.add(absorb, kinds)
    here.add(clear_statistic, kinds)
    done = here.add(clear_statistic, kinds, first=True)
    assert not done.is_set()
    go_on.set()
    assert here.add(absorb, kinds).wait(60.0)
    assert done.is_set()
    assert loaded == [formulas, clear_statistic, absorb]
    here.end()
    assert here.add(formulas, signature((1.0,)), first=True).is_set()


def test_a_process_that_forks_or_ends_early_does_not_hang(tmp_path: Path) -> None:
    early = """
import os, numpy as np
from guardband.kernels.linalg import dot
dot.at_once(np.ones(3), np.ones(3))
child = os.fork()
assert dot.at_once(np.ones(3), np.ones(3)) == 3.0
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    child(tmp_path, early)


def test_a_kernel_that_cannot_be_compiled_stays_plain(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @jit.kernel
    def grows(n):
        return float(np.zeros(int(n)).size)

    class Broken(Helper):
        def compile(self, *_: Any) -> None:
            raise HelperError("broken")

    monkeypatch.undo()  # `at_once` as it is
    monkeypatch.setattr(background, "Helper", Broken)
    here = background.Background()
    with caplog.at_level(logging.WARNING, "guardband"):
        here.add(grows, signature((3,)))
        while "stays slow" not in caplog.text:
            pass
    assert not grows.ready
    assert plain.run(grows, (3,)) == 3.0
