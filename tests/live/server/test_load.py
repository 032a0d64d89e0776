"""Many agents at once: an epoch over 64 of them, and 200 that wait."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from live.server.driver import SPACE, serving, version

from guardband.live.coordinator.coordinator import Coordinator
from guardband.live.coordinator.tokens import new_token
from guardband.live.server.first_start import DATABASE
from guardband.live.store.sqlite import SqliteStore


class Wire:
    """One connection that is kept, as thin as it can be: the clients share the server's cores."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token, self.stream = port, token, str(uuid.uuid4())
        self.reader: Any = None

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        if self.reader is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        raw = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n\r\n"
        self.writer.write(head.encode() + raw)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        length = next((int(x[15:]) for x in lines if x.startswith("content-length:")), 0)
        answer = await self.reader.readexactly(length)
        return int(lines[0].split()[1]), json.loads(answer) if answer else None

    async def news(self, **query: int) -> tuple[int, Any]:
        asked = "&".join(f"{key}={value}" for key, value in query.items())
        path = f"/v1/spaces/home/epochs/next?stream={self.stream}&config_version=1&{asked}"
        return await self.ask("GET", path)

    async def take_part(self, task: str, ready: asyncio.Barrier, opens: bool) -> float:
        body = {"stream": self.stream, "task": task, "schema_hash": SPACE.schema_hash}
        status, _ = await self.ask(
            "POST", "/v1/spaces/home/streams", {**body, "uses": [0, 1, 2], "library": "0"}
        )
        assert status == 201
        await ready.wait()
        z = np.array([0.3, 0.2, 0.1, 0.25])
        upload = {
            "base": {"n": 0, "version": ""},
            "checkpoint": {
                "version": version(),
                "sums": {
                    "n": 1,
                    "gram": np.outer(z, z)[np.triu_indices(4)].tolist(),
                    "surprise": 0.0,
                    "weight": 1.0,
                },
            },
            "for_epoch": 1,
            "trigger": opens,
        }
        if opens:
            await asyncio.sleep(1.0)  # the others hold their polls by then
        else:
            status, said = await self.news(wait=25)
            assert status == 200
            assert said["open"]["epoch"] == 1
        status, said = await self.ask("PUT", f"/v1/streams/{self.stream}/checkpoint", upload)
        assert status == 200, said
        if said["epoch"] == 0:
            status, said = await self.news(open_after=1, wait=25)
        assert said["epoch"] == 1
        self.writer.close()
        return time.monotonic()


async def one_epoch(port: int, tokens: list[str]) -> None:
    ready = asyncio.Barrier(len(tokens))
    wires = [Wire(port, token) for token in tokens]
    await asyncio.gather(
        *(each.take_part(f"t{k}", ready, opens=k == 0) for k, each in enumerate(wires))
    )


def prepare(data: Path, agents: int, deadline_s: float) -> list[str]:
    data.mkdir(parents=True)
    store = SqliteStore(data / DATABASE)
    sync = SPACE.sync.__class__(deadline_s=deadline_s)
    Coordinator(store).create_space(SPACE.changed(agents=agents, sync=sync), who="x", now=0.0)
    texts = []
    with store.transaction("") as t:
        for k in range(agents):
            row, text = new_token("agent", space="home", task=f"t{k}", now=0.0)
            t.put(row)
            texts.append(text)
    store.close()
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("agents", [64, 200])
def test_an_epoch_over_many_agents(tmp_path, agents: int) -> None:
    tokens = prepare(tmp_path / "gb", agents, deadline_s=30.0)
    given = ("--data", tmp_path / "gb", "--port", 0, "--quiet")
    with serving(*given) as (process, said):
        port = int(said.split("http://127.0.0.1:")[1].split("/")[0])
        time.sleep(2.0)
        started = time.process_time()
        asyncio.run(one_epoch(port, tokens))
        clients = time.process_time() - started
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        _, err = process.communicate(timeout=30)
    assert err == ""
    store = SqliteStore(tmp_path / "gb" / DATABASE)
    with store.reading() as t:
        row = t.epoch("home", 1)
    store.close()
    assert row is not None
    assert row.closed_at is not None
    assert (row.streams_in, row.streams_late, row.n) == (agents, 0, agents)
    seconds = row.closed_at - row.opened_at
    peak = next(int(x.split()[1]) for x in status.splitlines() if x.startswith("VmHWM"))
    print(f"{agents} agents: {seconds:.3f} s, server's peak {peak // 1024} MB, CPU {clients:.2f} s")
    assert seconds < 15.0  # on a busy machine; the bench holds it to a second
