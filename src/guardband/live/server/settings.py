"""What a server allows; every limit in one place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Settings"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The limits of a server; the defaults suit some hundred agents on a small machine.

    Attributes
    ----------
    body_bytes
        The longest body of a request. Where a space's totals are longer than this, the limit for
        uploads follows the largest space.
    body_s
        A request must have arrived whole within so many seconds.
    header_s
        And its headers within so many.
    send_s
        A client that reads nothing for so long is disconnected.
    poll_s
        The longest wait of a poll.
    polls, polls_per_token
        Polls held at once.
    watchers, watchers_per_token
        Event streams held at once.
    connections
        Connections held at once; more are closed on arrival.
    strangers
        How many of them one peer may hold without a valid token, once half of all are taken.
    uploads_per_s, upload_burst
        Uploads and reports by token.
    streams_per_s, stream_burst
        New streams by token: every one of them is kept.
    requests_per_s, request_burst
        Everything else by token.
    tokens, spaces
        How many of each there may be.
    tick_s
        How often deadlines are looked at.
    alerts_s
        How often alerts are looked for, to log new ones.
    open_metrics
        Whether /metrics answers without a token.
    """

    body_bytes: int = 64 * 1024
    body_s: float = 10.0
    header_s: float = 10.0
    send_s: float = 30.0
    poll_s: float = 25.0
    polls: int = 2_000
    polls_per_token: int = 1_000
    watchers: int = 100
    watchers_per_token: int = 20
    connections: int = 4_000
    strangers: int = 64
    uploads_per_s: float = 10.0
    upload_burst: int = 100
    streams_per_s: float = 0.5
    stream_burst: int = 1_000
    requests_per_s: float = 100.0
    request_burst: int = 1_000
    tokens: int = 10_000
    spaces: int = 1_000
    tick_s: float = 0.05
    alerts_s: float = 15.0
    open_metrics: bool = False
