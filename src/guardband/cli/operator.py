"""What operators' commands share: their target (a data folder or a server), and their errors."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from guardband.errors import GuardbandError, InvalidValueError
from guardband.extras import how_to_install
from guardband.files import plain_errors

if TYPE_CHECKING:
    from guardband.live.coordinator import Coordinator
    from guardband.live.store import Store

__all__ = ["DATA", "WHO", "Target", "existing", "file_json", "file_text", "open_store"]
__all__ += ["print_table", "readable_errors", "targeted"]

P = ParamSpec("P")
T = TypeVar("T")
Data = Annotated[Path, typer.Option(help="The server's data folder, on this machine.")]
Url = Annotated[str | None, typer.Option(help="Or a running server, such as https://gb:8710.")]
Token = Annotated[
    str | None,
    typer.Option(
        help="Token for --url: an admin's; to read, a viewer's.", envvar="GUARDBAND_TOKEN"
    ),
]
DATA = Path("gb")
OPTIONS: dict[str, tuple[Any, Any]] = {
    "data": (Data, DATA),
    "url": (Url, None),
    "token": (Token, None),
}
WHO = "command line"


@dataclass(frozen=True)
class Target:
    """What a command acts on: a data folder of this machine, or a running server."""

    data: Path
    url: str | None
    token: str | None

    def do(
        self,
        here: Callable[[Coordinator], T],
        method: str,
        path: str,
        body: Any = None,
        *,
        read: Callable[[Any], T],
    ) -> T:
        """Do something in the data folder, or ask the server for it; `read` takes its answer."""
        with readable_errors():
            if self.url is not None:
                return read(self._ask(self.url, method, path, body))
            from guardband.live.coordinator import Coordinator

            with closing(existing(self.data)) as store:
                return here(Coordinator(store))

    def _ask(self, url: str, method: str, path: str, body: Any) -> Any:
        """Ask a running server; its refusals become errors.

        The token in a data folder of this machine is not sent: it may belong to another server.
        """
        from guardband.live.link import HttpLink

        if self.token is None:
            whose, role = ("a viewer's", "viewer") if method == "GET" else ("an admin's", "admin")
            raise InvalidValueError(
                f"--url needs {whose} token: set GUARDBAND_TOKEN or give --token; a server on "
                f"this machine keeps it in its data folder, as in {self.data / f'{role}.token'}."
            )
        with closing(HttpLink(url, self.token)) as link:
            return link.ask(method, path, body)


def targeted(command: Callable[Concatenate[Target, P], None]) -> Callable[..., None]:
    """Add the options --data, --url and --token to a command and pass it the `Target` they name."""

    @functools.wraps(command)
    def wrapped(*args: Any, **given: Any) -> None:
        where = {name: given.pop(name) for name in OPTIONS}
        command(Target(**where), *args, **given)

    hints = get_type_hints(command, include_extras=True)
    taken = [
        each.replace(annotation=hints[each.name])
        for each in list(inspect.signature(command).parameters.values())[1:]
    ] + [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in OPTIONS.items()
    ]
    wrapped.__annotations__ = {each.name: each.annotation for each in taken}
    wrapped.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return wrapped


@contextmanager
def readable_errors(instead: str = "") -> Iterator[None]:
    """Turn refusals, stores in trouble and missing packages into errors that say what to do.

    `instead`: what users of this command give where Python is given a space's settings.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        extra = "postgres" if (error.name or "").startswith("psycopg") else "live"
        raise InvalidValueError(
            f"this needs {error.name or 'more packages'}: {how_to_install(extra)}."
        ) from None
    except (GuardbandError, ImportError) as error:  # of another system: it says so itself
        told = str(error)
        if instead:
            from guardband.live.protocol.space_rules import GIVEN

            told = told.replace(GIVEN, instead)
        raise InvalidValueError(told) from None


def file_text(path: Path, option: str) -> str:
    """Return the text of a file that was given with an option."""
    with plain_errors(path, f"it cannot be read; give {option} a file of JSON"):
        try:
            return path.read_text("utf-8")
        except UnicodeDecodeError:
            raise InvalidValueError(f"'{path}' is no text; give {option} a file of JSON.") from None


def file_json(path: Path, option: str) -> dict[str, Any]:
    """Return the settings in a file of JSON that was given with an option."""
    try:
        found = json.loads(file_text(path, option))
    except json.JSONDecodeError as error:
        raise InvalidValueError(f"'{path}' is not valid JSON: {error}.") from None
    if not isinstance(found, dict):
        raise InvalidValueError(
            f"'{path}' has no settings, as in {{\"agents\": 2}}, but {found!r}."
        )
    return found


def open_store(data: Path, url: str | None = None) -> Store:
    """Return the store of a data folder, or of a database server."""
    if url is None:
        from guardband.live.coordinator import open_store as open_file
        from guardband.live.server import DATABASE

        return open_file(data / DATABASE)
    if url.startswith(("postgresql://", "postgres://")):
        from guardband.live.store import PostgresStore

        return PostgresStore(url)
    raise InvalidValueError(
        f"--store takes postgresql://..., not {url!r}; SQLite needs only --data."
    )


def existing(data: Path) -> Store:
    """Return the store of a data folder in which a server has been started, or GUARDBAND_STORE."""
    from guardband.live.server import DATABASE

    if address := os.environ.get("GUARDBAND_STORE"):
        return open_store(data, address)
    if not (data / DATABASE).is_file():
        raise FileNotFoundError(
            f"there is no {data / DATABASE}: start `guardband serve --data {data}` once, or give "
            "--data or --url."
        )
    return open_store(data)


def print_table(columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """Print rows under the names of their columns."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column.replace("_", " "))
    for row in rows:
        values = (row.get(column) for column in columns)
        table.add_row(*("-" if value in (None, "") else str(value) for value in values))
    Console(width=None if os.isatty(1) else 120).print(table)
