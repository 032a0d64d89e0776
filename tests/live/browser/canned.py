"""A coordinator that only talks: the dashboard's files, and canned answers in the API's shape."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import guardband
from guardband.live.server.answers import in_words
from guardband.live.server.replies import SummaryReply
from guardband.live.server.summary import REASON_REPLIES

STATIC = Path(guardband.__file__).parent / "live" / "static"
POLICY = "default-src 'self'"
NOW = 1_763_000_000.0
TOKEN = "gb_canned_secret"
FEATURES = [f"user {u} x film {f}" for u in "abc" for f in "abc"]


def agent(task: str, index: int, **changes: Any) -> dict[str, Any]:
    """An agent that has done well for a while."""
    n = 4000 + 700 * index
    row = {
        "task": task,
        "index": index,
        "uses": [k for k in range(9) if index == 1 or k != 9 - index],
        "state": "ok",
        "streams": 1,
        "last_seen_s": 1.0 + index,
        "epoch": 38,
        "epoch_lag": 0,
        "lease_s": None,
        "alpha": 0.1,
        "n": n,
        "counters": {
            "decisions": n + 12,
            "learned": int(0.8 * n),
            "explored": 0,
            "baseline": n + 12 - int(0.8 * n),
            "observed": n - 5,
            "defaulted": 5,
            "discarded": 0,
            "late": 3,
            "orphan": 0,
            "duplicate": 0,
            "lost": 0,
            "conflicts": 0,
            "shadow": 0,
        },
        "sums": {
            "reward": 0.64 * n,
            "floor": 0.38 * n,
            "lead": 0.26 * n,
            "lead_squares": 0.18 * n,
            "counted": n,
            "margin": 0.2 * n,
        },
        "gauges": {
            "pending": 12,
            "oldest_pending_s": 0.4,
            "margin_min": 0.0021 * index,
            "margin_p05": 0.04,
            "beta": 2.31,
            "logdet": 51.0,
            "own_n": n,
            "foreign_n": 9000,
            "conservative_recent": 0.03,
        },
        "reasons": {"careful": int(0.17 * n), "stuck": int(0.03 * n)},
        "why": "the most promising action of all is certified to clear the floor",
        "outlook": "",
        "theta": [0.55 * (k % 4 == 0) + 0.02 * math.sin(k + index) for k in range(9)],
        "halfwidth": [0.08 + 0.01 * index] * 9,
        "lead_mean": 0.26,
        "lead_halfwidth": 0.02,
        "uplift": None,
        "heterogeneity": 0.3,
        "alarms": [],
    }
    return row | changes


def summary(**changes: Any) -> dict[str, Any]:
    """A space in which all is well."""
    row = {
        "space": "films",
        "now": NOW,
        "paused": None,
        "config_version": 1,
        "config": {"features": FEATURES, "algorithm": "guard-ucb", "alpha": 0.1, "agents": 12},
        "epoch": 38,
        "epoch_age_s": 12.0,
        "open": None,
        "delta": 0.001,
        "delta_spent": 0.00072,
        "lead_mean": 0.26,
        "lead_halfwidth": 0.02,
        "uplift": None,
        "alerts": [],
        "agents": [agent("home", 1), agent("similar", 2), agent("mail", 3)],
        "reasons": {code: reply.model_dump() for code, reply in REASON_REPLIES.items()},
        "epochs": [
            {
                "epoch": e,
                "closed_at": NOW - 12 - 300 * (1 - e / 38) ** 2,
                "opened_by": ("home", "similar", "mail")[e * 7 % 3],
                "streams_in": 3 - (e % 9 == 0),
                "streams_late": int(e % 9 == 0),
                "duration_ms": 23.0 + e,
                "n": 330 * e,
                "logdet": 1.3 * e,
            }
            for e in range(1, 39)
        ],
        "events": [
            {"seq": 1, "at": NOW - 320, "who": "admin", "what": "space created", "detail": {}},
            {
                "seq": 2,
                "at": NOW - 312,
                "who": "home",
                "what": "stream registered",
                "detail": {"stream": "0b7e1f7c-1f0a-4bd0-a1b2-5ad0e6d4c111"},
            },
        ],
        "theta": {
            "names": FEATURES,
            "mean": [0.577 * (k % 4 == 0) + 0.01 * math.sin(k) for k in range(9)],
            "halfwidth": [0.06] * 9,
        },
    }
    return in_words(SummaryReply.model_validate(row | changes)).model_dump(mode="json")


def history(tasks: tuple[str, ...] = ("home", "similar", "mail")) -> dict[str, Any]:
    """Five minutes of learning."""
    times = [NOW - 300 + 5 * i for i in range(61)]
    agents = {}
    for k, task in enumerate(tasks):
        grown = [1 - math.exp(-i / (8 + 3 * k)) for i in range(61)]
        agents[task] = {
            "reward_mean": [None, *(0.42 + 0.24 * g for g in grown[1:])],
            "floor_mean": [None, *(0.38 + 0.005 * k for _ in grown[1:])],
            "conservative": [1 - g for g in grown],
            "margin_min": [0.03 * g + 0.002 for g in grown],
            "margin_p05": [0.05 * g + 0.002 for g in grown],
            "beta": [2.0 + g for g in grown],
            "n": [70 * i for i in range(61)],
        }
    return {"t": times, "agents": agents}


ALERTS = [
    {
        "id": "margin",
        "severity": "page",
        "task": "home",
        "text": "an action was played whose margin was -0.012.",
        "remedy": "Pause learning, then look at the decision in the agent's journal.",
        "runbook": "docs/runbook.md#margin",
        "since": NOW - 30,
    },
    {
        "id": "stale",
        "severity": "ticket",
        "task": "mail",
        "text": "not heard of for 412 s.",
        "remedy": "See that the process runs and reaches this address.",
        "runbook": "docs/runbook.md#stale",
        "since": NOW - 300,
    },
]


class Answers:
    """What the canned coordinator says; change it as you like between two polls."""

    def __init__(self) -> None:
        self.spaces: list[dict[str, Any]] = [{"space": "films"}]
        self.summary = summary()
        self.history = history()
        self.posted: list[tuple[str, dict[str, Any] | None]] = []
        self.role = "admin"


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, answers: Answers, *args: Any) -> None:
        self.answers = answers
        super().__init__(*args, directory=str(STATIC))

    def log_message(self, *_: Any) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def _json(self, status: int, data: Any) -> None:
        body = json.dumps(data).encode()
        kind = "application/json" if status < 400 else "application/problem+json"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _known(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._json(401, {"status": 401, "code": "unauthorized", "detail": "no such token."})
        return False

    def do_GET(self) -> None:
        if not self.path.startswith("/v1/"):
            super().do_GET()
        elif self._known():
            if self.path == "/v1/me":
                self._json(200, {"role": self.answers.role})
            elif self.path == "/v1/spaces":
                self._json(200, self.answers.spaces)
            elif self.path.endswith("/summary"):
                self._json(200, self.answers.summary)
            else:
                self._json(200, self.answers.history)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        data = json.loads(body) if body else None
        if not self._known():
            return
        self.answers.posted.append((self.path, data))
        if self.path.endswith("/acknowledge"):
            seen = {"by": "somebody", "at": NOW, "reason": data["reason"]}
            alerts = [{**each, "acknowledged": seen} for each in self.answers.summary["alerts"]]
            self.answers.summary = {**self.answers.summary, "alerts": alerts}
        else:
            paused = data["reason"] if data else None
            self.answers.summary = {**self.answers.summary, "paused": paused}
        self._json(200, {})


@contextmanager
def serving(port: int = 0) -> Iterator[tuple[str, Answers]]:
    """Serve on a free port; yield the address and the answers."""
    answers = Answers()
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Handler, answers))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", answers
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
