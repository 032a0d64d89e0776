"""`guardband space` and `guardband token`: what an operator does first."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from guardband.live.store.base import Store, TokenRow

__all__ = ["ask", "existing", "open_store", "plainly", "space_app", "token_app"]

space_app = typer.Typer(
    help="Create, list and change spaces of the live system.", no_args_is_help=True
)
token_app = typer.Typer(help="Create, list, rotate and delete tokens.", no_args_is_help=True)

Data = Annotated[Path, typer.Option(help="The server's data folder, on this machine.")]
Url = Annotated[str | None, typer.Option(help="Or a running server, such as https://gb:8710.")]
Token = Annotated[str | None, typer.Option(help="Admin token for --url.", envvar="GUARDBAND_TOKEN")]
HERE = Path("gb")
WHO = "command line"
TIMEOUT_S = 30.0


@contextmanager
def plainly() -> Iterator[None]:
    """Turn a missing extra, a refusal and a broken store into errors with a sentence."""
    from guardband.live.messages import Refused  # noqa: PLC0415
    from guardband.live.store.base import StoreError  # noqa: PLC0415

    try:
        yield
    except ModuleNotFoundError as error:
        extra = "postgres" if error.name == "psycopg" else "live"
        raise ValueError(
            f"this needs {error.name or 'more packages'}: pip install 'guardband[{extra}]'."
        ) from None
    except (Refused, StoreError) as error:
        raise ValueError(str(error)) from None


def open_store(data: Path, url: str | None = None) -> Store:
    """Return the store of a data folder, or of a database server."""
    if url is None:
        from guardband.live.server.first_start import DATABASE  # noqa: PLC0415
        from guardband.live.store.sqlite import SqliteStore  # noqa: PLC0415

        return SqliteStore(data / DATABASE)
    if url.startswith(("postgresql://", "postgres://")):
        from guardband.live.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(url)
    raise ValueError(f"--store takes postgresql://..., not {url!r}; SQLite needs only --data.")


@space_app.command("create")
def create_space(
    name: Annotated[str, typer.Argument(help="Its name.")],
    features: Annotated[
        str | None, typer.Option(help="Names of the features, with commas between them.")
    ] = None,
    agents: Annotated[int | None, typer.Option(help="How many tasks may join.")] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Share of the baseline's reward that may be lost.")
    ] = None,
    contexts: Annotated[
        str | None, typer.Option(help="shared, or per-request: each has a context of its own.")
    ] = None,
    noise: Annotated[float | None, typer.Option(help="Bound on the reward noise.")] = None,
    theta_bound: Annotated[float | None, typer.Option(help="Bound on theta's length.")] = None,
    mode: Annotated[str | None, typer.Option(help="strict or policy.")] = None,
    window_s: Annotated[float | None, typer.Option(help="How long to wait for rewards.")] = None,
    default: Annotated[float | None, typer.Option(help="What counts where none came.")] = None,
    order: Annotated[str | None, typer.Option(help="window or prompt.")] = None,
    profile: Annotated[str | None, typer.Option(help="platform or hospital.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="JSON with these and all other settings.")
    ] = None,
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Create a space.

    For example: guardband space create home --features price,fresh,rating --agents 3
    """
    from guardband.live.space import Space  # noqa: PLC0415

    given: dict[str, Any] = {} if file is None else json.loads(file.read_text())
    own = {
        "name": name,
        "features": None if features is None else [f.strip() for f in features.split(",")],
        "agents": agents,
        "alpha": alpha,
        "contexts": contexts,
        "noise": noise,
        "theta_bound": theta_bound,
        "mode": mode,
        "profile": profile,
    }
    rewards = {"window_s": window_s, "default": default, "order": order}
    given |= {key: value for key, value in own.items() if value is not None}
    rewards = {key: value for key, value in rewards.items() if value is not None}
    if rewards:
        given["rewards"] = {**given.get("rewards", {}), **rewards}
    for needed in ("features", "agents"):
        if needed not in given:
            raise ValueError(f"a space needs --{needed}.")
    space = Space.from_json(given)
    with plainly():
        if url is None:
            from guardband.live.coordinator.coordinator import Coordinator  # noqa: PLC0415

            with closing(existing(data)) as store:
                Coordinator(store).create_space(space, who=WHO, now=time.time())
        else:
            ask("POST", url, "/v1/spaces", token, data, space.as_json())
    typer.echo(f"space {name}: {space.dim} features, {space.agents} tasks, alpha {space.alpha:g}.")
    typer.echo(f"next: guardband token create --space {name} --task TASK")


@space_app.command("list")
def list_spaces(data: Data = HERE, url: Url = None, token: Token = None) -> None:
    """List the spaces."""
    with plainly():
        if url is None:
            with closing(existing(data)) as store, store.reading() as t:
                found = [
                    {**row._asdict(), "space": row.name, "tasks": len(t.tasks(row.name))}
                    for row in t.spaces()
                ]
        else:
            found = ask("GET", url, "/v1/spaces", token, data)
    _print_table(("space", "tasks", "epoch", "config_version", "paused"), found)


@token_app.command("create")
def create_token(
    space: Annotated[str | None, typer.Option(help="The space that it is for.")] = None,
    task: Annotated[str | None, typer.Option(help="The task, for an agent.")] = None,
    role: Annotated[str | None, typer.Option(help="admin, agent or viewer.")] = None,
    note: Annotated[str, typer.Option(help="Who has it, for the list.")] = "",
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Create a token, and print it: this is the only time that it is shown.

    With --task it is an agent's, else a viewer's unless --role says otherwise.
    """
    from guardband.checks import check_choice  # noqa: PLC0415

    role = check_choice(
        "role", role or ("viewer" if task is None else "agent"), ("admin", "agent", "viewer")
    )
    with plainly():
        if url is None:
            text = _store_token(data, role, space, task, note)
        else:
            given = {"role": role, "space": space, "task": task, "note": note}
            body = {key: value for key, value in given.items() if value is not None}
            text = ask("POST", url, "/v1/tokens", token, data, body)["token"]
    typer.echo(text)


@token_app.command("rotate")
def rotate_token(
    ident: Annotated[str, typer.Argument(help="The token's id, see: guardband token list")],
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Create a token with the same rights; delete the old one when the new one is in use."""
    with plainly():
        if url is None:
            with closing(existing(data)) as store:
                old = _token_row(store, ident)
            text = _store_token(data, old.role, old.space, old.task, old.note)
        else:
            text = ask("POST", url, f"/v1/tokens/{ident}/rotate", token, data)["token"]
    typer.echo(text)


@token_app.command("delete")
def delete_token(
    ident: Annotated[str, typer.Argument(help="The token's id, see: guardband token list")],
    data: Data = HERE,
    url: Url = None,
    token: Token = None,
) -> None:
    """Revoke a token; a server that runs on the data folder notices within seconds."""
    with plainly():
        if url is None:
            with closing(existing(data)) as store:
                row = _token_row(store, ident)
                with store.transaction(row.space or "") as t:
                    t.put(row._replace(revoked_at=time.time()))
        else:
            ask("DELETE", url, f"/v1/tokens/{ident}", token, data)
    typer.echo(f"token {ident} is revoked.")


@token_app.command("list")
def list_tokens(data: Data = HERE, url: Url = None, token: Token = None) -> None:
    """List the tokens, without their secrets."""
    with plainly():
        if url is None:
            with closing(existing(data)) as store, store.reading() as t:
                rows = [row for row in t.tokens() if row.revoked_at is None]
            found = [{**row._asdict(), "id": row.token} for row in rows]
        else:
            found = ask("GET", url, "/v1/tokens", token, data)
    _print_table(("id", "role", "space", "task", "note"), found)


def existing(data: Path) -> Store:
    """Return the store of a data folder in which a server has been started, or GUARDBAND_STORE."""
    from guardband.live.server.first_start import DATABASE  # noqa: PLC0415

    if address := os.environ.get("GUARDBAND_STORE"):
        return open_store(data, address)
    if not (data / DATABASE).is_file():
        raise FileNotFoundError(
            f"there is no {data / DATABASE}: start `guardband serve --data {data}` once, or give "
            "--data or --url."
        )
    return open_store(data)


def _token_row(store: Store, ident: str) -> TokenRow:
    with store.reading() as t:
        row = t.token(ident)
    if row is None or row.revoked_at is not None:
        raise ValueError(f"there is no token {ident!r}; see: guardband token list")
    return row


def _store_token(data: Path, role: str, space: str | None, task: str | None, note: str) -> str:
    from guardband.live.server.auth import new_token  # noqa: PLC0415

    row, text = new_token(role, space=space, task=task, note=note, now=time.time())
    with closing(existing(data)) as store, store.transaction(space or "") as t:
        if space is not None and t.space(space) is None:
            raise ValueError(f"there is no space {space!r}; see: guardband space list")
        t.put(row)
        detail = {"token": row.token, "role": role, "task": task}
        t.note(time.time(), space or "", WHO, "token created", json.dumps(detail))
    return text


def ask(method: str, url: str, path: str, token: str | None, data: Path, body: Any = None) -> Any:
    """Ask a running server; its refusals become errors.

    The token of a data folder that happens to lie here is not sent: it may be another server's.
    """
    import httpx  # noqa: PLC0415

    if token is None:
        raise ValueError(
            f"--url needs an admin token: set GUARDBAND_TOKEN or give --token; a server on this "
            f"machine keeps it in its data folder, as in {data / 'admin.token'}."
        )
    headers = {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx.request(
            method, url.rstrip("/") + path, json=body, headers=headers, timeout=TIMEOUT_S
        )
    except httpx.HTTPError as error:
        raise OSError(f"{url} cannot be reached: {error}") from None
    if answer.is_error:
        try:
            detail = answer.json()["detail"]
        except (ValueError, KeyError, TypeError):
            detail = f"it answered {answer.status_code}"
        raise ValueError(f"{url}: {detail}")
    return answer.json() if answer.content else None


def _print_table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in rows:
        values = (row.get(column) for column in columns)
        table.add_row(*("-" if value in (None, "") else str(value) for value in values))
    Console(width=None if os.isatty(1) else 120).print(table)
