"""`guardband serve`: coordinator, API, dashboard and metrics in one process."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from guardband.cli.numbers import port_option
from guardband.cli.operator import file_json, open_store, readable_errors
from guardband.errors import InvalidValueError

if TYPE_CHECKING:
    from guardband.live.store import Store

__all__ = ["serve"]

PORT = 8710


def serve(
    data: Annotated[Path, typer.Option(help="Folder for the store and the first tokens.")] = Path(
        "gb"
    ),
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, port_option("Port; 0 takes a free one.")] = PORT,
    tls_cert: Annotated[Path | None, typer.Option(help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key, PEM.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve a public address without TLS.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            help="postgresql://... instead of the SQLite file in the data folder.",
            envvar="GUARDBAND_STORE",
        ),
    ] = None,
    space: Annotated[
        list[Path] | None, typer.Option(help="JSON file of a space to create; repeat for more.")
    ] = None,
    open_metrics: Annotated[
        bool, typer.Option("--open-metrics", help="Answer /metrics without a token.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log errors only.")] = False,
) -> None:
    """Serve spaces: coordinator, HTTP API, dashboard and metrics, until Ctrl-C.

    The first start makes an admin token, writes it to DATA/admin.token, and a viewer's beside it
    for dashboards and Prometheus; it is printed to terminals only. Agents get tokens of their own:

        guardband space create home --features price,fresh,rating --agents 3

        guardband token create --space home --task movies
    """
    if (tls_cert is None) != (tls_key is None):
        raise InvalidValueError("TLS needs both --tls-cert and --tls-key.")
    for file in (tls_cert, tls_key):
        if file is not None and not file.is_file():
            raise FileNotFoundError(f"there is no file {file}.")
    _check_address(host, tls=tls_cert is not None, insecure=insecure)
    with contextlib.ExitStack() as held:
        with readable_errors(), contextlib.ExitStack() as on_failure:
            from guardband.live.server import (
                Settings,
                bind,
                first_tokens,
                log_lines,
                make_app,
                only_server,
                server_for,
            )

            if store is None:
                held.enter_context(only_server(data))
            sock = on_failure.enter_context(bind(host, port))
            kept = on_failure.enter_context(contextlib.closing(open_store(data, store)))
            first = first_tokens(kept, data, now=time.time())
            _create_spaces(kept, space or [])
            settings = Settings(open_metrics=open_metrics)
            server = server_for(
                make_app(kept, settings=settings),
                settings=settings,
                tls_cert=None if tls_cert is None else str(tls_cert),
                tls_key=None if tls_key is None else str(tls_key),
            )
            on_failure.pop_all()  # from here on the server closes them
        scheme = "http" if tls_cert is None else "https"
        shown = f"[{host}]" if ":" in host else host
        address = f"{scheme}://{shown}:{sock.getsockname()[1]}"
        # A script that reads the address may stop the server at once: print it when signals work.
        server.ready = lambda: _say_where(address, data, first=first)
        with log_lines(quiet=quiet), contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[sock])
    typer.echo("stopped.")


def _check_address(host: str, *, tls: bool, insecure: bool) -> None:
    """Refuse to send tokens and data over a network without TLS."""
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not (loopback or tls or insecure):
        raise InvalidValueError(
            f"{host} can be reached from other machines, and without TLS others on the network can "
            "read tokens and sums. Give --tls-cert and --tls-key, or listen on 127.0.0.1 behind "
            "a proxy that speaks TLS, or say --insecure if the network is yours alone."
        )


def _create_spaces(store: Store, files: list[Path]) -> None:
    """Create the spaces that files describe, where they do not exist yet."""
    from guardband.live.coordinator import Coordinator
    from guardband.live.protocol.space import SpaceSettings

    coordinator = Coordinator(store)
    known = {row.name for row in coordinator.spaces()}
    for file in files:
        described = file_json(file, "--space")
        try:
            space = SpaceSettings(**described)
        except (TypeError, ValueError) as error:
            raise InvalidValueError(f"{file}: {error}") from None
        if space.name not in known:
            coordinator.create_space(space, who="command line", now=time.time())
            known.add(space.name)


def _say_where(address: str, data: Path, *, first: bool) -> None:
    """Print the addresses; the token only on a terminal, since logs may be read by many."""
    from guardband.live.server import read_token, token_file

    token = read_token(data) if sys.stdout.isatty() else None
    admin, viewer = (token_file(data, role) for role in ("admin", "viewer"))
    typer.echo(f"dashboard  {address}/" + (f"#token={token}" if token else ""))
    typer.echo(f"API        {address}/v1/    described in {address}/openapi.json")
    beside = f"    token for it in {viewer}" if viewer.is_file() else ""
    typer.echo(f"metrics    {address}/metrics{beside}")
    if admin.is_file():
        started = " (made now, on the first start)" if first else ""
        typer.echo(f"tokens     {admin}{started}")
    else:
        typer.echo("tokens     where the first server of this store wrote them: DATA/admin.token")
    typer.echo(f"data in {os.path.abspath(data)}; stop with Ctrl-C")
    sys.stdout.flush()
