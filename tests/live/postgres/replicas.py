"""Replicas of the coordinator: `guardband serve` in processes of their own."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

__all__ = ["Replica", "admin_token"]

PATIENCE = 120.0


class Replica:
    """One `guardband serve --store postgresql://...`, on the same port in every life.

    Parameters
    ----------
    store
        The address of the database; None: a SQLite file in the folder.
    folder
        For its token files and its log.
    checkout
        Whose guardband it runs; None: the one that is imported here.
    """

    def __init__(self, store: str | None, folder: Path, checkout: Path | None = None) -> None:
        self.store, self.folder, self._env = store, folder, dict(os.environ)
        if checkout is not None:
            self._env["PYTHONPATH"] = str(checkout.resolve() / "src")
        folder.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, wait: bool = True) -> Replica:
        """Start it, and wait until it serves."""
        command = [sys.executable, "-m", "guardband", "serve", "--quiet", "--port", str(self.port)]
        command += ["--data", str(self.folder)]
        command += [] if self.store is None else ["--store", self.store]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=self._env)
        if wait:
            self.wait()
        return self

    def wait(self) -> None:
        """Return when it is ready."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/readyz", timeout=5.0).status_code == 200:
                    return
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            time.sleep(0.1)
        raise AssertionError(f"a replica does not start: {self.log()}")

    def end(self, how: int = signal.SIGKILL) -> None:
        """End its process, by default without asking."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def log(self) -> str:
        """Return the end of what it wrote."""
        return (self.folder / "log").read_text(errors="replace")[-4000:]


def admin_token(*replicas: Replica) -> str:
    """Return the token that the first start left in one of their folders."""
    for replica in replicas:
        with contextlib.suppress(OSError):
            return (replica.folder / "admin.token").read_text().strip()
    raise AssertionError("no replica made an admin token")
