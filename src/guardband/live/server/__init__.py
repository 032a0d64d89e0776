"""A coordinator over HTTP: API, dashboard, metrics. Needs the extra `live`."""

from typing import TYPE_CHECKING

from guardband.lazy import lazy_imports

if TYPE_CHECKING:
    from guardband.live.server.answers import named
    from guardband.live.server.app import make_app
    from guardband.live.server.first_start import (
        DATABASE,
        first_tokens,
        only_server,
        read_token,
        token_file,
    )
    from guardband.live.server.logs import log_lines
    from guardband.live.server.replies import AnswerReply, SummaryReply
    from guardband.live.server.run import bind, bind_file, server_for
    from guardband.live.server.settings import Settings
    from guardband.live.server.summary import summary_now
    from guardband.live.server.words import as_sentence, count, percent, signed, span
else:
    __getattr__ = lazy_imports(__name__)

__all__ = [
    "DATABASE",
    "AnswerReply",
    "Settings",
    "SummaryReply",
    "as_sentence",
    "bind",
    "bind_file",
    "count",
    "first_tokens",
    "log_lines",
    "make_app",
    "named",
    "only_server",
    "percent",
    "read_token",
    "server_for",
    "signed",
    "span",
    "summary_now",
    "token_file",
]
