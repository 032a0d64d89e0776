"""A way to the coordinator on which everything goes wrong, and that writes down what passed.

One listener for each task. Connections are refused or cut, requests cut in the middle, delayed,
or sent again later; replies are swallowed; a task can be cut off altogether. What was sent and
what the coordinator answered is the checker's evidence, independent of both sides' files.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from guardband.live.protocol.messages import News, Revision, Upload, Uploaded
from guardband.live.protocol.sums import Sums

__all__ = ["Acknowledged", "Evidence", "FaultProxy", "Told"]


@dataclass(frozen=True)
class Rates:
    """How often what goes wrong: refusals by connection, the rest by request."""

    refuse: float = 0.05
    cut: float = 0.04
    swallow: float = 0.06
    delay: float = 0.10
    again: float = 0.15  # of uploads


CALM = Rates(0.0, 0.0, 0.0, 0.0, 0.0)
LONGEST_DELAY_S = 0.5
LATEST_COPY_S = 2.0


class Acknowledged(NamedTuple):
    """An upload that the coordinator said is stored."""

    stream: str
    revision: Revision


class Told(NamedTuple):
    """An epoch's sum as an agent was told it."""

    connection: int
    epoch: int
    sums: Sums | None


@dataclass
class Evidence:
    """What passed."""

    sent: dict[tuple[str, Revision], Sums] = field(default_factory=dict)
    acknowledged: list[Acknowledged] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    reached: dict[str, list[float]] = field(default_factory=dict)  # news that came, by task
    statuses: dict[int, int] = field(default_factory=dict)
    changed: list[tuple[str, Revision]] = field(default_factory=list)  # sent with two contents
    faults: dict[str, int] = field(default_factory=dict)


class Message(NamedTuple):
    """One request or reply: first line, and everything as it came."""

    first: str
    raw: bytes
    body: bytes


class FaultProxy:
    """Listeners in a thread of their own.

    Parameters
    ----------
    tasks
        One listener for each.
    upstream
        The coordinator's port.
    seed
        For all that goes wrong.
    """

    def __init__(self, tasks: list[str], upstream: int, seed: int) -> None:
        self.evidence = Evidence()
        self.ports: dict[str, int] = {}
        self.rates = Rates()
        self._upstream, self._rng = upstream, random.Random(seed)
        self._cut_off: dict[str, str] = {}
        self._open: dict[str, set[asyncio.StreamWriter]] = {task: set() for task in tasks}
        self._connections = 0
        self._copies: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(tasks), self._loop).result(10)

    async def _listen(self, tasks: list[str]) -> None:
        self._servers = []
        for task in tasks:

            async def handle(
                reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: str = task
            ) -> None:
                await self._connection(task, reader, writer)

            server = await asyncio.start_server(handle, "127.0.0.1", 0)
            self._servers.append(server)
            self.ports[task] = server.sockets[0].getsockname()[1]

    # What the stage director does.

    def cut_off(self, task: str, how: str) -> None:
        """Let nothing through; "refuse" says so, "hang" does not."""
        self._cut_off[task] = how
        self._count(f"partition ({how})")
        if how == "refuse":
            self._loop.call_soon_threadsafe(self._abort, task)

    def reconnect(self, task: str) -> None:
        """Let everything through again; what hung is lost."""
        if self._cut_off.pop(task, None) == "hang":
            self._loop.call_soon_threadsafe(self._abort, task)

    def calm(self) -> None:
        """Let nothing go wrong any more."""
        self.rates = CALM
        for task in list(self._cut_off):
            self.reconnect(task)

    def close(self) -> None:
        """Stop."""

        async def stop() -> None:
            for task in self._open:
                self._abort(task)
            for server in self._servers:
                server.close()
            rest = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
            for each in rest:
                each.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # What happens to a connection.

    def _abort(self, task: str) -> None:
        for writer in list(self._open[task]):
            writer.transport.abort()

    def _chance(self, share: float, name: str) -> bool:
        struck = self._rng.random() < share
        if struck:
            self._count(name)
        return struck

    def _count(self, name: str) -> None:
        self.evidence.faults[name] = self.evidence.faults.get(name, 0) + 1

    async def _connection(
        self, task: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._cut_off.get(task) == "refuse" or self._chance(self.rates.refuse, "refused"):
            writer.transport.abort()
            return
        self._connections += 1
        writers = {writer}
        self._open[task].add(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            writers.add(up_writer)
            self._open[task].add(up_writer)
            number = self._connections
            while (asked := await _message(reader)) is not None and await self._pass_on(
                task, number, asked, writer, up_reader, up_writer
            ):
                pass
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            for each in writers:
                self._open[task].discard(each)
                each.transport.abort()

    async def _pass_on(
        self,
        task: str,
        connection: int,
        asked: Message,
        writer: asyncio.StreamWriter,
        up_reader: asyncio.StreamReader,
        up_writer: asyncio.StreamWriter,
    ) -> bool:
        """Carry one request and its reply, or not; tell whether the connection goes on."""
        self._note_sent(asked)
        if self._cut_off.get(task) == "hang":
            await asyncio.sleep(3600.0)
        if self._chance(self.rates.delay, "delayed"):
            await asyncio.sleep(self._rng.uniform(0.0, LONGEST_DELAY_S))
        if self._chance(self.rates.cut, "cut"):
            up_writer.write(asked.raw[: self._rng.randrange(len(asked.raw))])
            await up_writer.drain()
            return False
        if asked.first.startswith("PUT") and self._chance(self.rates.again, "sent again"):
            copy = asyncio.create_task(self._send_again(connection, asked))
            self._copies.add(copy)
            copy.add_done_callback(self._copies.discard)
        up_writer.write(asked.raw)
        await up_writer.drain()
        reply = await _message(up_reader)
        if reply is None:
            return False
        self._note_reply(connection, asked, reply)
        if self._cut_off.get(task) == "hang":
            await asyncio.sleep(3600.0)
        if self._chance(self.rates.swallow, "swallowed"):
            return False
        if "/epochs/next" in asked.first and not writer.transport.is_closing():
            self.evidence.reached.setdefault(task, []).append(time.time())
        writer.write(reply.raw)
        await writer.drain()
        return True

    async def _send_again(self, connection: int, asked: Message) -> None:
        """Let an upload arrive a second time, later, perhaps after its successors."""
        await asyncio.sleep(self._rng.uniform(0.0, LATEST_COPY_S))
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection("127.0.0.1", self._upstream)
            try:
                writer.write(asked.raw)
                reply = await _message(reader)
                if reply is not None:
                    self._note_reply(connection, asked, reply)
            finally:
                writer.transport.abort()

    # What the checker will want to know.

    def _note_sent(self, asked: Message) -> None:
        if not asked.first.startswith("PUT"):
            return
        sent = Upload.model_validate_json(asked.body).checkpoint
        key, total = (_stream(asked), sent.revision), sent.sums
        before = self.evidence.sent.setdefault(key, total)
        if before.as_bytes() != total.as_bytes():
            self.evidence.changed.append(key)

    def _note_reply(self, connection: int, asked: Message, reply: Message) -> None:
        status = int(reply.first.split()[1])
        self.evidence.statuses[status] = self.evidence.statuses.get(status, 0) + 1
        if status != 200:
            return
        if asked.first.startswith("PUT"):
            revision = Uploaded.model_validate_json(reply.body).revision
            self.evidence.acknowledged.append(Acknowledged(_stream(asked), revision))
        elif "/epochs/next" in asked.first:
            news = News.model_validate_json(reply.body)
            self.evidence.told.append(Told(connection, news.epoch, news.sums))


async def _message(reader: asyncio.StreamReader) -> Message | None:
    """Read one request or reply; None where the other side has gone in good order."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as end:
        if end.partial:
            raise
        return None
    lines = head.decode("latin-1").split("\r\n")
    length = 0
    for line in lines[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
        assert name.lower() != "transfer-encoding", "this proxy knows no chunks"
    body = await reader.readexactly(length) if length else b""
    return Message(lines[0], head + body, body)


def _stream(asked: Message) -> str:
    """Return the stream of PUT /v1/streams/STREAM/checkpoint."""
    return asked.first.split("/")[3]
