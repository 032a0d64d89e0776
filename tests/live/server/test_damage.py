"""Sums that were damaged in the store: never used, and sent again by those who have them."""

from __future__ import annotations

import time
from pathlib import Path

import apsw
import pytest
from live.server.driver import SPACE, Served, served

from guardband.live.server.first_start import DATABASE


def damage(server: Served, stream: str, place: int, column: str = "total") -> None:
    connection = apsw.Connection(str(server.data / DATABASE))
    connection.set_busy_timeout(10_000)
    sums = bytearray(
        connection.execute(f"SELECT {column} FROM stream WHERE stream = ?", (stream,)).get
    )
    sums[place] ^= 1
    connection.execute(f"UPDATE stream SET {column} = ? WHERE stream = ?", (bytes(sums), stream))
    connection.close()


@pytest.mark.parametrize("place", [0, 6, 60])
def test_a_damaged_stream_is_sent_again(server: Served, place: int) -> None:
    one, other = server.agent("movies"), server.agent("tv")
    for each in (one, other):
        assert each.register().status_code == 201
        each.upload()
    damage(server, one.id, place)
    one.observe()
    assert one.put().status_code == 200
    with server.admin() as admin:
        events = admin.get("/v1/spaces/home/summary").json()["events"]
    assert "damaged stream" in {event["what"] for event in events}
    other.upload()


def test_epochs_are_closed_without_what_is_damaged(tmp_path: Path) -> None:
    sync = {"deadline_s": 1.0, "min_interval_s": 0.0}
    with served(tmp_path / "gb", sync=sync) as server:
        with server.admin() as admin:
            zoo = SPACE.changed(name="zoo", sync=sync).as_json()
            assert admin.post("/v1/spaces", json=zoo).status_code == 201
        pairs = [[server.agent(t, space=s) for t in ("movies", "tv")] for s in ("home", "zoo")]
        for one, other in pairs:
            for each in (one, other):
                assert each.register().status_code == 201
            one.upload(trigger=True)
            for each in (one, other):
                each.upload(for_epoch=1)
        damage(server, pairs[0][0].id, 60, "entry_total")
        for _, other in pairs:  # the first agents stay away: their entries of epoch 1 count
            other.upload(trigger=True, seen_epoch=1)
            other.upload(for_epoch=2, seen_epoch=1)
        counted = []
        for _, other in pairs:
            end = time.monotonic() + 60.0
            while other.news(after=1).json()["epoch"] < 2 and time.monotonic() < end:
                time.sleep(0.2)
            counted.append(other.news(after=1).json()["sums"]["n"])
        assert counted[0] < counted[1]
