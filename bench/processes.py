"""Servers in processes of their own: any program, and one that answers and does nothing else."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx

__all__ = ["echo", "free_port", "process"]

ECHO = """
import sys, uvicorn
async def app(scope, receive, send):
    while (await receive())["more_body"]:
        pass
    head = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": b"{}"})
port = int(sys.argv[1])
uvicorn.run(
    app,
    host="127.0.0.1",
    port=port,
    lifespan="off",
    log_config=None,
    access_log=False,
    timeout_keep_alive=65,
)
"""


@contextlib.contextmanager
def process(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server and wait until it answers."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started: subprocess.Popen[bytes] = subprocess.Popen([sys.executable, *command], **quiet)  # type: ignore[call-overload]
    try:
        until = time.monotonic() + 60.0
        while time.monotonic() < until:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{port}/healthz")
                break
            time.sleep(0.05)
        yield started
    finally:
        started.terminate()
        started.wait()


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.contextmanager
def echo() -> Iterator[str]:
    """Serve requests by {}, without looking at them; yields the address."""
    port = free_port()
    with process(["-c", ECHO, str(port)], port):
        yield f"http://127.0.0.1:{port}"
