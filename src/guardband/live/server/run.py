"""Runs the application under uvicorn: header time-outs, a limit on connections, clean shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import os
import resource
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from guardband.errors import InvalidValueError
from guardband.live.server.logs import log
from guardband.live.server.settings import Settings

__all__ = ["Server", "bind", "bind_file", "running", "server_for"]

SPARE_FILES = 64  # descriptors that connections leave to the store and to logs
GRACE_S = 5


class _Protocol(H11Protocol):
    """uvicorn's HTTP/1.1, which drops clients that take too long to send their headers.

    And those that hold too many connections without a token.
    """

    limits = Settings()
    strangers: ClassVar[Counter[str]]  # by peer: connections on which no valid token was seen yet

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._late: asyncio.TimerHandle | None = None
        self._peer: str | None = _peer(transport)
        self.strangers[self._peer] += 1
        self.app_state = {**self.app_state, "connection": self}
        taken, most = len(self.connections), self.limits.connections
        crowd = self.strangers[self._peer] > self.limits.strangers
        if taken > most or (crowd and 2 * taken > most):
            log("too many connections", logging.WARNING, peer=self._peer, taken=taken)
            transport.abort()
        else:
            self._arm()

    def trust(self) -> None:
        """Note that a valid token was seen on this connection, or that it has ended."""
        if self._peer is not None:
            self.strangers[self._peer] -= 1
            if not self.strangers[self._peer]:
                del self.strangers[self._peer]
            self._peer = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._disarm()  # a request is being answered; its body has a clock of its own
        elif self._late is None:
            self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self.trust()
        super().connection_lost(exc)

    def _arm(self) -> None:
        self._late = self.loop.call_later(self.limits.header_s, self.transport.abort)

    def _disarm(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


class Server(uvicorn.Server):
    """A server that ends waiting polls before it shuts down, and does not re-raise its signals."""

    ready: Callable[[], None] | None = None  # called when it serves, and listens to signals

    async def main_loop(self) -> None:
        """Serve until told to stop."""
        if self.ready is not None:
            self.ready()
        await super().main_loop()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop."""
        broadcaster = getattr(getattr(self.config.app, "state", None), "broadcaster", None)
        if broadcaster is not None:
            broadcaster.stop()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM, without raising the signal again afterwards."""
        with super().capture_signals():
            try:
                yield
            finally:
                self._captured_signals.clear()


def server_for(
    app: FastAPI,
    *,
    settings: Settings,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> Server:
    """Return a server for the application; `run(sockets=[...])` serves until it is told to stop."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(16, min(settings.connections, files - SPARE_FILES))

    class Protocol(_Protocol):
        limits = replace(settings, connections=most)
        strangers: ClassVar = Counter[str]()

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=65,  # longer than any poll, so that agents keep their connection
        timeout_graceful_shutdown=GRACE_S,
        backlog=min(2048, most),
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )
    return Server(config)


def _peer(transport: Any) -> str:
    """Return whose connection it is: an address, or the network of one where they are many."""
    found = transport.get_extra_info("peername")
    if not isinstance(found, tuple):
        return ""  # a socket file
    address = ipaddress.ip_address(found[0].partition("%")[0])
    if address.version == 4 or address.ipv4_mapped is not None:
        return str(address)
    return str(ipaddress.ip_network((address, 64), strict=False))


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; OSError says what is wrong with it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # The protocol must be named: asyncio sends at once (TCP_NODELAY) only where it is.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        why = error.strerror or error
        raise OSError(
            f"cannot listen on {host}:{port}: {why}; choose another with --host or --port."
        ) from None
    sock.set_inheritable(False)
    return sock


def _is_served(path: Path) -> bool:
    """Tell whether a program listens on a socket file; one that is too busy to answer does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
        one.setblocking(False)
        try:
            one.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            return True
    return True


def bind_file(path: Path) -> socket.socket:
    """Return a socket that listens on a file, which only its owner may use.

    A file that a killed server left is taken over; one behind which somebody listens is not.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISSOCK(path.stat().st_mode):
            if _is_served(path):
                raise InvalidValueError(
                    f"another program listens on {path}: give this one a socket file of its own, "
                    "or stop the other first."
                )
            path.unlink()
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        sock.bind(str(path))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise OSError(f"cannot listen on {path}: {error.strerror or error}.") from None
    finally:
        os.umask(before)
    sock.set_inheritable(False)
    return sock


@contextlib.contextmanager
def running(app: FastAPI, *, settings: Settings, host: str = "127.0.0.1") -> Iterator[str]:
    """Serve in a thread for the time of the block; yields the address. For tests and demos."""
    sock = bind(host, 0)
    server = server_for(app, settings=settings)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start; see its log.")
            time.sleep(0.01)
        yield f"http://{host}:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        sock.close()
