"""T8: whatever is sent, nothing breaks, and every answer is one that the document names."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import strategies as st
from live.fuzz import EXAMPLES, Feed, fuzz, operations_of
from live.memory_store import MemoryStore
from live.server.driver import SPACE, Served, Stream, served

from guardband.live.protocol.sums import matrix_of
from guardband.live.server import Settings, make_app

DOCUMENT = make_app(MemoryStore()).openapi()
OPERATIONS = operations_of(DOCUMENT)
SETTINGS = Settings(
    poll_s=0.02,
    spaces=12,
    tokens=300,
    uploads_per_s=1e6,
    streams_per_s=1e6,
    requests_per_s=1e6,
)
TOKENS = [{"role": "agent", "space": "home", "task": "x"}, {"role": "viewer"}]
RECORD = {"record": "cm93cw=="}  # of rows that were looked at; what is in it only agents read
MOSTLY = st.sampled_from((True, True, True, False))

pytestmark = pytest.mark.slow


class Town:
    """A server with inhabitants: what a stranger would need to know to get past 404."""

    def __init__(self, server: Served) -> None:
        self.server = server
        with server.admin() as admin:
            kept = admin.post("/v1/looked-at", json=RECORD)
            assert kept.status_code == 201
            self.spare = SPACE.changed(name="spare", agents=1_000, looked_at=kept.json()["sha256"])
            assert admin.post("/v1/spaces", json=self.spare.as_json()).status_code == 201
        self.mine, self.ended, self.victim = self.stream(1), self.stream(2), self.stream(3, "tv")
        for each in (self.ended, self.mine, self.victim, self.stream(4, "old")):
            assert each.register().status_code == 201
            each.upload(5)
            if each is self.ended:
                assert each.seal().status_code == 200
        alerting = {"gauges": {"margin_min": -0.5}}
        self.mine.upload(5, trigger=True, for_epoch=1, report=alerting)
        self.victim.upload(5, for_epoch=1)
        agent = self.mine.client.headers["Authorization"].removeprefix("Bearer ")
        admin_token = server.admin_token
        self.tokens = (admin_token, agent, admin_token, agent, server.viewer_token, None)
        ids = [server.token("viewer").split("_")[1] for _ in range(60)]
        self.doomed, self.spares = ids[:50], ids[50:]
        self.before = self.stored()

    def stream(self, number: int, task: str = "movies") -> Stream:
        one = self.server.agent(task)
        one.id = str(uuid.UUID(int=number))
        return one

    def stored(self) -> Any:
        """What the victim has: nobody whose token is not its own may change a bit of it."""
        with self.server.service.store.reading() as t:
            row = t.stream(self.victim.id)
        assert row is not None
        return row[:11]  # all but its answers and entries, which epochs change

    def leave(self, task: str) -> None:
        """Let a task leave the pool, as its agent would after an alarm."""
        with self.server.service.store.transaction("home") as t:
            row = t.task("home", task)
            assert row is not None
            t.put(row._replace(status="apart"))

    def things(self) -> dict[str, list[Any]]:
        """What there is, by the name under which a request asks for it."""
        return {
            "space": ["home", "home", "home", "home", "spare", "nowhere"],
            "task": ["spare", "movies"],
            "epoch": ["1", "2"],
            "alert": ["margin-below-zero", "stale"],
            "stream": [self.mine.id] * 6 + [self.ended.id, self.ended.id, str(uuid.UUID(int=99))],
        }

    def body(self, method: str, path: str, draw: Callable[..., Any]) -> Any:
        """What an honest client might send; None: nothing."""
        why = {"reason": "it is Monday"}
        bodies: dict[str, Callable[[], Any]] = {
            "post streams": lambda: self.newcomer(draw),
            "put checkpoint": lambda: self.more(draw),
            "post seal": lambda: draw(
                st.sampled_from([self.ended.base, {"n": 1, "version": "0" * 32}])
            ),
            "post report": lambda: {"counters": {"decisions": 3}, "gauges": {"beta": 1.5}},
            "post spaces": lambda: SPACE.changed(name=f"s{draw(st.integers(0, 30))}").as_json(),
            "put {space}": lambda: {
                "config": self.spare.changed(alpha=draw(st.floats(0.01, 1))).as_json()
            },
            "post looked-at": lambda: RECORD,
            "post tokens": lambda: draw(st.sampled_from(TOKENS)),
            **{f"post {verb}": lambda: why for verb in ("pause", "quarantine", "retract")},
            **{f"post {verb}": lambda: why for verb in ("restore", "readmit")},
            "post acknowledge": lambda: {"task": "movies", **why},
        }
        return bodies.get(f"{method} {path.rpartition('/')[2]}", lambda: None)()

    def newcomer(self, draw: Callable[..., Any]) -> dict[str, Any]:
        """A stream that registers, perhaps as the heir of one that ended."""
        number = draw(st.integers(10, 40))
        task = draw(st.sampled_from(["movies", f"task-{number}"]))  # movies has a live stream
        body = self.mine.register_body(stream=str(uuid.UUID(int=number)), task=task)
        heir = {"continue_of": {"stream": self.ended.id, "revision": self.ended.base}}
        return body | (heir if draw(st.booleans()) else {})

    def more(self, draw: Callable[..., Any]) -> dict[str, Any]:
        """An upload on top of what is stored by now."""
        with self.server.service.store.reading() as t:
            row = t.stream(self.mine.id)
        assert row is not None
        stored = row.sums
        self.mine.n, self.mine.base = row.n, {"n": row.n, "version": row.version}
        self.mine.matrix = matrix_of(stored)
        count, epoch = draw(st.integers(1, 3)), draw(st.integers(0, 4))
        self.mine.observe(count)
        return self.mine.body(
            surprise=stored.surprise,
            weight=stored.weight + count,
            trigger=draw(st.booleans()),
            seen_epoch=epoch,
            for_epoch=epoch + 1,
        )

    def feed(self, method: str, path: str) -> Feed:
        things = self.things()
        things["id"] = self.doomed if method == "delete" else self.spares
        if "/agents/" in path:
            things |= {"space": ["home", "nowhere"], "task": ["tv", "spare"]}
        if path.endswith("/end"):
            things["task"] = ["old", "spare"]  # the victim's would be ended by an admin
        if path.endswith("/seal"):
            things["stream"] = [self.ended.id, self.ended.id, self.mine.id]
        if path.endswith("/readmit"):
            things["task"] = ["old", "spare"]
            self.leave("old")
        whole = path.endswith(("{space}/pause", "{space}/resume"))
        if whole or (method, path) == ("put", "/v1/spaces/{space}"):
            things["space"] = ["spare"]

        def put_in(case: Any, draw: Callable[..., Any], token: str | None) -> None:
            for name in case.path_parameters or ():
                if draw(MOSTLY):
                    case.path_parameters[name] = draw(st.sampled_from(things[name]))
            if "{stream}" in path and token != self.server.admin_token and draw(st.booleans()):
                case.path_parameters["stream"] = self.victim.id
            if path.endswith("/next") and draw(st.booleans()):
                case.query["stream"] = draw(st.sampled_from(things["stream"]))
            if path == "/v1/events" and _stays(case.query.get("seconds", 3600.0)):
                case.query["seconds"] = 0.01
            honest = self.body(method, path, draw)
            if honest is not None and draw(st.booleans()):
                case.media_type = "application/json"
                case.body = _mixed(honest, case.body, draw)

        return put_in


def _stays(seconds: Any) -> bool:
    """Whether somebody who asks for so long would be held."""
    try:
        return 0.0 < float(seconds) <= 86_400.0
    except (TypeError, ValueError):
        return False


def _mixed(honest: Any, made_up: Any, draw: Callable[..., Any]) -> Any:
    """An honest body, in which a part may be made up."""
    if isinstance(made_up, dict) and made_up and draw(st.booleans()):
        name = draw(st.sampled_from(sorted(made_up, key=str)))
        return honest | {name: made_up[name]}
    return honest


@pytest.fixture  # each operation has a town of its own: what others did may close its doors
def town(tmp_path) -> Iterator[Town]:
    with served(tmp_path, SETTINGS, agents=50) as server:
        yield Town(server)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_in_the_document(town: Town, method: str, path: str) -> None:
    said = fuzz(
        DOCUMENT,
        method,
        path,
        town.server.url,
        tokens=town.tokens,
        feed=town.feed(method, path),
    )
    good = sum(count for status, count in said.items() if status < 300)
    assert good > 0 or EXAMPLES < 300, said  # it got in, and not only to the door
    assert town.stored() == town.before
