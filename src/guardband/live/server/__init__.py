"""A coordinator over HTTP: API, dashboard, metrics. Needs `pip install 'guardband[live]'`."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.live.server.app import make_app
    from guardband.live.server.first_start import (
        DATABASE,
        first_tokens,
        only_server,
        read_token,
        token_file,
    )
    from guardband.live.server.logs import set_up
    from guardband.live.server.run import bind, server_for
    from guardband.live.server.settings import Settings
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "DATABASE",
    "Settings",
    "bind",
    "first_tokens",
    "make_app",
    "only_server",
    "read_token",
    "server_for",
    "set_up",
    "token_file",
]
