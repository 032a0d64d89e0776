"""The demo's scenario: a coordinator, three clients with simulated users, and a status line."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console

from guardband.demo.client import TOKEN
from guardband.demo.progress import progress
from guardband.demo.rival import in_a_line, read_truth, remarks_on
from guardband.demo.users import CHANGING, CLIENTS, SPACE, film_space
from guardband.errors import InvalidValueError
from guardband.live.link import HttpLink
from guardband.live.protocol.messages import Refused
from guardband.live.server import (
    DATABASE,
    Settings,
    bind,
    first_tokens,
    log_lines,
    make_app,
    only_server,
    read_token,
    server_for,
)
from guardband.live.store import SqliteStore

__all__ = ["run_demo"]

HOST = "127.0.0.1"
CHANGE_AFTER_S = 120.0
GRACE_S = 15.0  # for a client to upload what it has and end
LATELY = 15  # seconds, about: reports come every five
LINE_EVERY_S = 10.0  # where output goes to a file or a pipe


def run_demo(
    *,
    port: int = 8710,
    minutes: float | None = None,
    rate: float = 30.0,
    change_after: float = CHANGE_AFTER_S,
    browser: bool = True,
    data: Path | None = None,
) -> None:
    """Run the demo until Ctrl-C, or for some minutes.

    Parameters
    ----------
    port
        The dashboard's port; if it is taken, a free one.
    minutes
        How long; None: until Ctrl-C.
    rate
        Users per second of each client.
    change_after
        Seconds after which the tastes of one client's users change; 0: never.
    browser
        Whether to open the dashboard, where there is a desktop.
    data
        A folder to keep everything in; None: a temporary one.
    """
    console = Console(soft_wrap=True, highlight=False)
    last = ""
    with _interruptible() as asked, ExitStack() as stack, suppress(KeyboardInterrupt):
        if data is None:
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="guardband-")))
        stack.enter_context(only_server(data))
        url, token = stack.enter_context(_coordinator(data, port))
        address = f"{url}/#token={token}&space={SPACE}"
        console.print(f"dashboard  {address}")
        console.print(
            f"{len(CLIENTS)} parts of a film site recommend films to simulated users and learn "
            f"together; each keeps at least {1 - film_space().alpha_of(CLIENTS[0]):.0%} of what "
            "its old recommender earns. Stop with Ctrl-C."
        )
        if change_after:
            console.print(
                f"After {change_after:g} seconds the tastes of {CHANGING}'s users change: watch "
                "its agent notice, start anew and go on apart from the others."
            )
        sys.stdout.flush()
        if browser and _has_desktop():
            webbrowser.open(address)
        link = stack.enter_context(closing(HttpLink(url, token)))
        running = stack.enter_context(_clients(link, data, rate, change_after or math.inf))
        started = time.monotonic()
        with suppress(KeyboardInterrupt):
            _watch(console, link, running, started, minutes, asked)
        last = progress(_summary(link), time.monotonic() - started)
        console.print(in_a_line(*read_truth(_folder(data, client) for client in CLIENTS)))
    console.print(f"stopped. {last}")


class _Asked:
    """Whether a signal asked the demo to stop; without a lock, since signals come at any time."""

    to_stop = False


@contextmanager
def _interruptible() -> Iterator[_Asked]:
    """Let SIGTERM end the demo as Ctrl-C does; a second signal changes nothing."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    asked = _Asked()

    def once(*_: object) -> None:
        if not asked.to_stop:
            asked.to_stop = True
            raise KeyboardInterrupt

    for number in before:
        signal.signal(number, once)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _coordinator(data: Path, port: int) -> Iterator[tuple[str, str]]:
    """Run what `guardband serve` runs, in a thread that ends with us; yield its URL and token."""
    try:
        sock = bind(HOST, port)
    except OSError:
        sock = bind(HOST, 0)
    store = SqliteStore(data / DATABASE)
    first_tokens(store, data, now=time.time())
    token = read_token(data)
    if token is None:
        raise InvalidValueError(f"{data} has a store but no admin.token: choose another folder.")
    settings = Settings()
    folders = [_folder(data, client) for client in CLIENTS]
    app = make_app(store, settings=settings, remarks=lambda: remarks_on(*read_truth(folders)))
    server = server_for(app, settings=settings)
    with (data / "server.log").open("a") as log, log_lines(log):
        thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, daemon=True)
        thread.start()
        while not server.started:
            if not thread.is_alive():
                raise OSError(f"the coordinator did not start; see {log.name}.")
            time.sleep(0.01)
        try:
            yield f"http://{HOST}:{sock.getsockname()[1]}", token
        finally:
            server.should_exit = True
            thread.join(timeout=GRACE_S)
            sock.close()


def _folder(data: Path, client: str) -> Path:
    """Return where a client keeps its journal, and what its referee counts."""
    return data / "agents" / client


@contextmanager
def _clients(
    link: HttpLink, data: Path, rate: float, change_after: float
) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Create the space, start a process for every client; end them all, whatever happens."""
    try:
        link.create_space(film_space())
    except Refused as refused:
        if refused.code != "space_exists":  # the folder of an earlier demo has it already
            raise
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for client in CLIENTS:
            asked = {"role": "agent", "space": SPACE, "task": client}
            token = link.ask("POST", "/v1/tokens", asked)["token"]
            folder = _folder(data, client)
            folder.mkdir(parents=True, exist_ok=True)
            change = change_after if client == CHANGING else math.inf
            words = [client, link.url, str(folder), str(rate), str(change)]
            with (folder / "output.log").open("ab") as output:
                running[client] = subprocess.Popen(
                    [sys.executable, "-m", "guardband.demo.client", *words],
                    env={**os.environ, TOKEN: token},
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,  # Ctrl-C ends us, and we end them
                )
        yield running
    finally:
        for process in running.values():
            assert process.stdin is not None
            process.stdin.close()
        for process in running.values():
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _watch(
    console: Console,
    link: HttpLink,
    running: dict[str, subprocess.Popen[bytes]],
    started: float,
    minutes: float | None,
    asked: _Asked,
) -> None:
    """Show the progress, about once a second, until the time is up or a signal asks to stop."""
    gone: set[str] = set()
    seen: deque[dict[str, Any]] = deque(maxlen=LATELY)
    printed = -LINE_EVERY_S
    with console.status("the clients are starting") as status:
        while True:
            seconds = time.monotonic() - started
            seen.append(_summary(link))
            line = progress(seen[-1], seconds, seen[0] if len(seen) == LATELY else None)
            status.update(line)
            if not console.is_terminal and seconds >= printed + LINE_EVERY_S:
                console.print(line)
                sys.stdout.flush()
                printed = seconds
            for client, process in running.items():
                if process.poll() is not None and client not in gone:
                    gone.add(client)
                    console.print(f"{client} has ended ({process.returncode}); the others go on.")
            if len(gone) == len(running):
                raise ChildProcessError("all clients have ended; --data FOLDER keeps their logs.")
            left = 1.0 if minutes is None else 60.0 * minutes - seconds
            if left <= 0.0 or asked.to_stop:
                return
            time.sleep(min(1.0, left))


def _summary(link: HttpLink) -> dict[str, Any]:
    summary: dict[str, Any] = link.ask("GET", f"/v1/spaces/{SPACE}/summary")
    return summary


def _has_desktop() -> bool:
    """Tell whether a browser window would be seen."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
