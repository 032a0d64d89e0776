"""T9: what clients say of streams and epochs that are not theirs, or not true."""

from __future__ import annotations

import uuid

from live.server.driver import NEXT, Served, everything_of, problem, served


def test_false_claims_about_lost_epochs_stop_nobody(tmp_path) -> None:
    with served(tmp_path) as server, server.admin() as admin:
        liar, honest = server.agent("liar"), server.agent("honest")
        liar.register(), honest.register()
        liar.observe()
        for seen in range(1, 60):
            assert liar.put(seen_epoch=seen).status_code == 200
        answer = liar.put(seen_epoch=10**6)
        assert problem(answer) == (422, "invalid_epoch")
        summary = admin.get("/v1/spaces/home/summary").json()
        restores = [event for event in summary["events"] if event["what"] == "server restore"]
        assert len(restores) == 1
        opened = honest.upload(5, trigger=True)["open"]["epoch"]  # it has seen none of them
        assert opened <= 20
        honest.upload(5, for_epoch=opened)
        liar.put(for_epoch=opened)
        news = honest.news(wait=10, open_after=opened, config_version=1).json()
        assert (news["epoch"], news["own"]["n"]) == (opened, 10)


def test_another_agents_stream(shared: Served) -> None:
    mine, theirs = shared.agent("mine"), shared.agent("theirs")
    mine.register(), theirs.register()
    theirs.upload(5)
    before = everything_of(shared, theirs.id)
    theirs.observe()
    thief = mine.client
    assert problem(thief.put(f"/v1/streams/{theirs.id}/checkpoint", json=theirs.body())) == (
        403,
        "wrong_task",
    )
    for path, body in (("report", {}), ("seal", theirs.base)):
        assert problem(thief.post(f"/v1/streams/{theirs.id}/{path}", json=body)) == (
            403,
            "wrong_task",
        )
    assert problem(thief.get(NEXT, params={"stream": theirs.id})) == (403, "wrong_task")
    as_theirs = mine.register_body(task="theirs", stream=str(uuid.uuid4()))
    path = "/v1/spaces/home/streams"
    assert problem(thief.post(path, json=as_theirs)) == (403, "wrong_task")
    assert problem(thief.post(path, json=mine.register_body(stream=theirs.id))) == (
        409,
        "stream_taken",
    )
    heir = {"stream": theirs.id, "revision": theirs.base}
    body = mine.register_body(stream=str(uuid.uuid4()), continue_of=heir)
    assert problem(thief.post(path, json=body)) == (409, "stream_taken")
    with shared.client(shared.token(space="elsewhere", task="theirs")) as foreigner:
        answer = foreigner.put(f"/v1/streams/{theirs.id}/checkpoint", json=theirs.body())
        assert problem(answer) == (403, "wrong_space")
        assert problem(foreigner.get(NEXT)) == (403, "wrong_space")
    assert everything_of(shared, theirs.id) == before


def test_a_replayed_upload_counts_once(shared: Served) -> None:
    movies = shared.agent("replayed")
    movies.register()
    movies.observe()
    body = movies.body()
    path = f"/v1/streams/{movies.id}/checkpoint"
    assert movies.client.put(path, json=body).status_code == 200
    before = everything_of(shared, movies.id)
    for _ in range(5):
        assert movies.client.put(path, json=body).status_code == 200
    assert everything_of(shared, movies.id) == before
    movies.base = {"n": movies.n, "version": movies.version}
    movies.upload(5)
    old = movies.client.put(path, json=body)  # an old one, after newer ones
    assert problem(old) == (409, "revision_conflict")
