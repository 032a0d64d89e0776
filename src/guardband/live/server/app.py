"""The FastAPI application: API, dashboard files, middleware."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI, Security
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response

from guardband.live.server import admin, agents, errors, reads
from guardband.live.server.middleware import AuthRateLimit
from guardband.live.server.replies import AnswerReply
from guardband.live.server.service import Service
from guardband.live.server.settings import Settings
from guardband.live.server.uploads import UploadShortcut
from guardband.live.store import Store

__all__ = ["make_app"]

STATIC = Path(__file__).parents[1] / "static"
ABOUT = (
    "Agents upload sums over their observations and download pooled sums; operators watch and "
    "control. Errors are problem details (RFC 9457) with a stable `code`."
)


def make_app(
    store: Store,
    *,
    settings: Settings | None = None,
    remarks: Callable[[], Sequence[AnswerReply]] = tuple,
) -> FastAPI:
    """Return the application over a store, which it closes when it ends.

    Parameters
    ----------
    store, settings
        Where everything is kept, and the limits.
    remarks
        What to say on every page beside the answers, as the demo does.
    """
    service = Service(store, settings or Settings(), version("guardband"))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="guardband",
        version=service.version,
        description=ABOUT,
        docs_url=None,  # FastAPI's pages would load scripts from other hosts
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
    )
    app.state.service, app.state.broadcaster = service, service.broadcaster
    app.state.remarks = remarks
    bearer = Security(HTTPBearer(auto_error=False, description="gb_<id>_<secret>"))
    guarded = (agents.router, admin.router, reads.router)
    for router in guarded:
        app.include_router(router, dependencies=[bearer])
    app.include_router(reads.public)
    errors.install(app, [route for each in (*guarded, reads.public) for route in each.routes])
    _add_pages(app)
    app.add_middleware(UploadShortcut, service=service)
    app.add_middleware(  # around it
        AuthRateLimit,
        caller=service.caller,
        settings=service.settings,
        body_limit=service.body_limit,
        on_done=service.done,
    )
    return app


def _add_pages(app: FastAPI) -> None:
    """Give every file of the dashboard a route of its own: paths cannot be forged."""
    for file in sorted(path for path in STATIC.rglob("*") if path.is_file()):
        name = file.relative_to(STATIC).as_posix()
        _add_page(app, "/" if name == "index.html" else f"/{name}", file)
    if not (STATIC / "index.html").is_file():

        async def nothing(_: Request) -> Response:
            return PlainTextResponse("guardband runs; this installation has no dashboard.\n")

        app.add_route("/", nothing, include_in_schema=False)


def _add_page(app: FastAPI, path: str, file: Path) -> None:
    async def page(_: Request) -> Response:
        return FileResponse(file, headers={"Cache-Control": "no-cache"})

    app.add_route(path, page, include_in_schema=False)
