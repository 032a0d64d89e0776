"""`guardband agent`: one task's agent on loopback, for programs in other languages."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from guardband.cli.numbers import port_option
from guardband.cli.operator import file_json, readable_errors
from guardband.errors import InvalidValueError

__all__ = ["COORDINATOR", "CURL", "EXAMPLE", "CoordinatorAddress", "SpaceName", "TaskName"]
__all__ += ["TaskToken", "agent", "names_of"]

PORT = 8711
COORDINATOR = "http://127.0.0.1:8710"
SpaceName = Annotated[str, typer.Option(help="The space.")]
TaskName = Annotated[str, typer.Option(help="The task.")]
CoordinatorAddress = Annotated[str, typer.Option(help="https://... of a server, or local:FOLDER.")]
TaskToken = Annotated[
    str | None,
    typer.Option(
        help="The task's token; better given in the variable.", envvar="GUARDBAND_AGENT_TOKEN"
    ),
]
CURL = """\
curl -s http://127.0.0.1:8711/v1/decide -H "Authorization: Bearer $(cat STATE/sidecar.token)" \\
  -H 'Content-Type: application/json' \\
  -d '{"features": [[0.2, 0.1, 0.4], [0.5, 0.3, 0.1]], "baseline": 0, "baseline_reward": 0.3}'

curl -s http://127.0.0.1:8711/v1/reward -H "Authorization: Bearer $(cat STATE/sidecar.token)" \\
  -H 'Content-Type: application/json' -d '{"id": "ID", "reward": 0.4}'
"""
EXAMPLE = CURL.replace(" \\\n ", "")  # for --help, which wraps lines itself


def agent(
    space: SpaceName,
    task: TaskName,
    coordinator: CoordinatorAddress = COORDINATOR,
    token: TaskToken = None,
    state: Annotated[Path | None, typer.Option(help="Folder for the agent's journal.")] = None,
    uses: Annotated[
        str | None, typer.Option(help="Features that the task uses, with commas; else all.")
    ] = None,
    host: Annotated[str, typer.Option(help="Loopback address to listen on.")] = "127.0.0.1",
    port: Annotated[int, port_option("Port; 0 takes a free one.")] = PORT,
    socket: Annotated[
        Path | None,
        typer.Option(help="Listen on this file, which only you may use, instead of a port."),
    ] = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="Write decisions down, but play the baseline.")
    ] = False,
    space_file: Annotated[
        Path | None, typer.Option(help="JSON of the space, to make it where it is local:.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Log errors only.")] = False,
) -> None:
    """Run one task's agent, for programs in any language on this machine, until Ctrl-C.

    POST /v1/decide answers with the action to play, POST /v1/reward takes its reward; see below.
    The API is described in /openapi.json; /healthz reports the agent's state, /readyz whether it
    is at full speed.
    """
    with readable_errors("--space-file FILE"), contextlib.ExitStack() as on_failure:
        from guardband.live import SpaceSettings, connect
        from guardband.live.server import bind, bind_file, log_lines, server_for
        from guardband.live.sidecar import SETTINGS, is_loopback, make_sidecar, sidecar_token

        if not is_loopback(host):
            raise InvalidValueError(
                f"{host} can be reached from other machines, to which this agent sends no "
                "encrypted answers: listen on 127.0.0.1, and run one agent on every machine "
                "that decides."
            )
        settings = None
        if space_file is not None:
            described = file_json(space_file, "--space-file") | {"name": space}
            settings = SpaceSettings(**described)
        sock = on_failure.enter_context(bind(host, port) if socket is None else bind_file(socket))
        try:
            live = connect(
                coordinator,
                space=space,
                settings=settings,
                task=task,
                token=token,
                state_dir=state,
                uses=None if uses is None else names_of(uses),
                shadow=shadow,
            )
        except LookupError as error:
            raise InvalidValueError(str(error)) from None
        on_failure.callback(live.close)
        secret = sidecar_token(live.state_dir) if socket is None else None
        server = server_for(make_sidecar(live, secret), settings=SETTINGS)
        on_failure.pop_all()  # from here on the server closes them
    if socket is None:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{sock.getsockname()[1]}"
        typer.echo(f"agent      {address}/v1/decide    described in {address}/openapi.json")
        typer.echo(f"token in   {live.state_dir / 'sidecar.token'}")
    else:
        typer.echo(f"agent      http://localhost/v1/decide on {socket}")
    typer.echo(f"journal in {live.state_dir}; stop with Ctrl-C")
    sys.stdout.flush()
    with log_lines(quiet=quiet), contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[sock])
    typer.echo("stopped.")


def names_of(uses: str) -> list[int | str]:
    """Return the features in a list with commas, by number or by name."""
    parts = [part.strip() for part in uses.split(",")]
    return [int(part) if part.isdecimal() else part for part in parts]
