"""A process that compiles kernels into the cache, for others that must not be held up.

It reads requests from its input, answers each with a line, and ends with its input. Agents start it
as `python -m guardband.kernels.start.helper`.
"""

from __future__ import annotations

import base64
import os
import pickle
import subprocess
import sys
from pathlib import Path

from guardband.kernels._jit import Kernel
from guardband.kernels.start.signature import Signature

__all__ = ["Helper", "HelperError", "main"]

DONE = "compiled"
ROOT = Path(__file__).parents[3]  # where this guardband is imported from


class HelperError(Exception):
    """The helper could not be started, or did not compile."""


class Helper:
    """The helper as its parent sees it; started when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def compile(self, kernel: Kernel, kinds: Signature) -> None:
        """Wait until the cache has machine code for arguments of these types."""
        try:
            answer = self._ask(base64.b64encode(pickle.dumps((kernel, kinds))))
        except (OSError, pickle.PicklingError) as problem:
            raise HelperError(str(problem)) from problem
        if answer != DONE:
            raise HelperError(answer or "it has ended")

    def _ask(self, question: bytes) -> str:
        if self._process is None:
            self._process = _start()
        there, back = self._process.stdin, self._process.stdout
        assert there is not None
        assert back is not None
        there.write(question + b"\n")
        there.flush()
        return back.readline().decode().strip()


def _start() -> subprocess.Popen[bytes]:
    name = Path(sys.executable or "").name.lower()
    if "python" not in name or hasattr(sys, "frozen"):  # embedded, as in uWSGI, or an application
        raise OSError(f"{sys.executable!r} is not Python")
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", __spec__.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        start_new_session=True,  # Ctrl-C is for the parent
    )


def main() -> None:
    """Compile what is asked for, with a low priority and as the only one of this machine."""
    if hasattr(os, "nice"):
        os.nice(10)
    from guardband.kernels.start import machine_code  # noqa: PLC0415 - imports Numba

    for line in sys.stdin:
        try:
            kernel, kinds = pickle.loads(base64.b64decode(line))
            with machine_code.alone():
                machine_code.load(kernel, kinds)
            answer = DONE
        except Exception as problem:  # the parent says it
            answer = " ".join(f"{type(problem).__name__}: {problem}".split())
        print(answer, flush=True)


if __name__ == "__main__":
    main()
